// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// What callers read where signatures cannot be verified.
const (
	noResolver  = "nothing, since the gateway has no image-resolver that verifies signatures: set FNR_IMAGE_RESOLVER"
	notVerified = "nothing, since the image-resolver does not verify signatures: update it, and do not work offline"
)

// complete adds to the facts what the policy needs to know of an image: its digest, and who has signed it.
func (g *Guard) complete(ctx context.Context, p *policy.Policy, req *evaluation.Request, facts *policy.Facts) error {
	if g.cfg.Resolver == nil {
		facts.Found = noResolver
		if rule, reads := p.ReadsSigners(*facts); reads {
			return g.unverified(ctx, rule, req, facts)
		}
		if facts.Image.Digest == "" && p.NeedsDigest(*facts) {
			return fault.New(fault.Precondition,
				"the policy decides about %s by its digest, which this gateway cannot look up: "+
					"name the image by digest, or set FNR_IMAGE_RESOLVER", req.Given)
		}
		return nil
	}
	if p.NeedsDigest(*facts) {
		if err := g.resolve(ctx, req, facts, nil); err != nil {
			return fmt.Errorf("find the digest of %s for the policy: %w", req.Given, err)
		}
	}
	if p.NeedsSigners(*facts) {
		if err := g.resolve(ctx, req, facts, p.Signers()); err != nil {
			return fmt.Errorf("verify the signatures of %s for the policy: %w", req.Given, err)
		}
		if rule, reads := p.ReadsSigners(*facts); reads && (facts.Found == notVerified || facts.Unread != "") {
			return g.unverified(ctx, rule, req, facts)
		}
	}
	return nil
}

// unverified returns the denial of an image whose signers are not all known, by a rule with a condition that reads
// them.
func (g *Guard) unverified(ctx context.Context, rule string, req *evaluation.Request, facts *policy.Facts) error {
	d := policy.Decision{Rule: rule, Reason: "its condition reads who has signed it. Found: " + facts.Signatures()}
	g.metrics.decided(ctx, d)
	return &evaluation.PassedOverError{Reason: denied(fmt.Sprintf("function %q", req.Given), d)}
}

// resolve finds the digests of a request's image, and which of the signers have signed it. The function runs with
// this digest or not at all.
func (g *Guard) resolve(
	ctx context.Context, req *evaluation.Request, facts *policy.Facts, signers []signer.Signer,
) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	resolved, err := g.cfg.Resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{
		Image: req.Image.String(), Signers: messages(signers), TrustedRoots: trustedRoots(signers),
	})
	if err != nil {
		if err = rpcfault.FromConnect(err); fault.Of(err) == fault.NotFound {
			return fault.New(fault.Precondition, "%w", err)
		}
		return err
	}
	req.Digest = resolved.GetDigest()
	facts.Digest, facts.IndexDigest = req.Digest, resolved.GetIndexDigest()
	signatures := resolved.GetSignatures()
	facts.Signers, facts.Found, facts.Unread = signatures.GetSigners(), signatures.GetFound(), signatures.GetUnread()
	if signatures == nil {
		facts.Found = notVerified
	} else if kind := unknownKind(signers, signatures); kind != "" {
		facts.Unread = cmp.Or(facts.Unread, "the image-resolver does not verify "+kind+": update it")
	}
	if facts.Unread != "" && facts.Found != "" {
		facts.Found += ", and " + facts.Unread
	}
	return nil
}
