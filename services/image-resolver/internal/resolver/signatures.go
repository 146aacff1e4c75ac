// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Signatures is which signers have signed an image.
type Signatures struct {
	// Signers are the names of the signers that have, in the order in which they were asked for.
	Signers []string
	// Found is which signatures there are if no signer has signed.
	Found string
	// Unread is why a document that may have further signatures could not be read; empty if all were.
	Unread string
}

// signatures returns which of a request's signers have signed an image. It is remembered by digest.
func (r *Resolver) signatures(
	ctx context.Context, repository string, image *oci.Image, req Request,
) (*Signatures, error) {
	found, err := r.get(ctx, r.signaturesQuery(repository, image, req))
	if unsigned, ok := errors.AsType[*unsignedError](err); ok {
		return &Signatures{Found: unsigned.found}, nil
	}
	if err != nil {
		return nil, annotate(err, "verify the signatures of", repository+"@"+image.Digest)
	}
	return &Signatures{Signers: found.Value.signers, Unread: found.Value.unread}, nil
}

// signaturesQuery asks who has signed an image. That no signer has is remembered as failures are, so that a new
// signature is soon found.
func (r *Resolver) signaturesQuery(repository string, image *oci.Image, req Request) cache.Query[string, answer] {
	v := verification{resolver: r, repository: repository, digests: []string{image.Digest}, signers: req.Signers}
	if image.IndexDigest != "" {
		v.digests = append(v.digests, image.IndexDigest)
	}
	return cache.Query[string, answer]{
		Key:      "signatures " + repository + "@" + strings.Join(v.digests, ",") + " " + hashOf(req.Signers),
		Lifetime: r.cfg.Cache.Tags, Fetch: v.run, Renew: req.Renew,
	}
}

// hashOf returns what distinguishes signers and their keys.
func hashOf(signers []signer.Signer) string {
	hash := sha256.New()
	for _, s := range signers {
		fmt.Fprintf(hash, "%d %q", len(s.Keys), s.Name)
		for _, key := range s.Keys {
			fmt.Fprintf(hash, " %x", key.DER)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// unsignedError is an image without a signature by one of the signers.
type unsignedError struct{ found string }

func (e *unsignedError) Error() string { return e.found }

// verification finds who has signed an image: its digest, or that of the index from which it was chosen.
type verification struct {
	resolver   *Resolver
	repository string
	digests    []string
	signers    []signer.Signer
}

// run verifies the signatures in the registry. A mirror that lacks one of a signer may not have copied it: the
// registry itself is asked then.
func (v verification) run(ctx context.Context) (a answer, err error) {
	t := tally{signers: v.signers, payloads: map[string]*signer.Content{}, signed: make([]bool, len(v.signers))}
	err = v.resolver.cfg.Registry.With(ctx, v.repository, func(ctx context.Context, s *registry.Session) error {
		t.total, t.other, t.unread = 0, "", nil
		for _, digest := range v.digests {
			if err := t.add(ctx, s, digest); err != nil {
				return err
			}
		}
		return t.verdict()
	})
	if a.signers = t.names(); len(a.signers) > 0 && isUnsigned(err) {
		err = nil // some have signed, and all sources were asked
		if t.unread != nil {
			a.unread = t.unread.Error()
		}
	}
	return a, err
}

// isUnsigned reports whether the sources have no further signature.
func isUnsigned(err error) bool {
	_, ok := errors.AsType[*unsignedError](err)
	return ok
}

// tally counts signatures.
type tally struct {
	signers  []signer.Signer
	payloads map[string]*signer.Content // by digest: many signatures are of the same one
	signed   []bool                     // by the signers

	total int
	// other is a signature by a signer that is of something else.
	other string
	// unread is why a document could not be read; nil if all were.
	unread error
}

// verdict returns nil if all signers have signed, and else what was found in a source.
func (t *tally) verdict() error {
	switch signed := len(t.names()); {
	case signed == len(t.signers):
		return nil
	case signed == 0 && t.unread != nil: // it may have the signature
		return fault.New(fault.Precondition, "%w (besides: %s)", t.unread, t.found())
	default:
		return fault.New(fault.Precondition, "%w", &unsignedError{t.found()})
	}
}

// add counts the signatures of a digest. A document that cannot be read hides no signatures in others.
func (t *tally) add(ctx context.Context, s *registry.Session, digest string) error {
	all, err := s.Signatures(ctx, digest)
	if err != nil {
		return err
	}
	t.unread = cmp.Or(t.unread, all.Unread)
	for _, signature := range all.Found {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch payload, err := t.payload(ctx, s, signature.Payload); {
		case err == nil:
			t.verify(digest, payload, signature)
		case registry.Unreadable(err):
			t.unread = cmp.Or(t.unread, err)
		default:
			return err
		}
	}
	return nil
}

// payload returns the content with a digest that is signed.
func (t *tally) payload(ctx context.Context, s *registry.Session, digest string) (*signer.Content, error) {
	if known := t.payloads[digest]; known != nil {
		return known, nil
	}
	content, err := s.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	if len(content) > oci.MaxPayloadBytes {
		return nil, fault.New(fault.Precondition, "a signature has the payload %s of %d bytes: at most %d are read",
			digest, len(content), oci.MaxPayloadBytes)
	}
	t.payloads[digest] = signer.NewContent(content)
	return t.payloads[digest], nil
}

// verify counts a signature of a digest.
func (t *tally) verify(digest string, payload *signer.Content, signature oci.Signature) {
	t.total++
	if !signature.Bundle {
		t.count(digest, payload, signature.Value, func() []string { return oci.SignedDigests(payload.Bytes()) })
		return
	}
	if bundle, ok := oci.ParseBundle(payload.Bytes()); ok {
		signed := signer.NewContent(bundle.Signed)
		for _, value := range bundle.Values {
			t.count(digest, signed, value, bundle.SignedDigests)
		}
	}
}

// count counts one signature. What it is of is read only when a signer's signature is verified.
func (t *tally) count(digest string, signed *signer.Content, signature []byte, of func() []string) {
	for i, s := range t.signers {
		if !slices.ContainsFunc(s.Keys, func(key signer.Key) bool { return key.Verify(signed, signature) }) {
			continue
		}
		switch images := of(); {
		case slices.Contains(images, digest):
			t.signed[i] = true
		case len(images) > 0:
			t.other = fmt.Sprintf("a signature by %s that is of another image, %.71s", s.Name, images[0])
		default:
			t.other = fmt.Sprintf("a signature by %s that is of no image", s.Name)
		}
	}
}

// names returns the names of the signers that have signed.
func (t *tally) names() []string {
	var names []string
	for i, s := range t.signers {
		if t.signed[i] {
			names = append(names, s.Name)
		}
	}
	return names
}

// found returns what there is in place of a signature by a signer.
func (t *tally) found() string {
	switch {
	case t.other != "":
		return t.other
	case t.total == 0:
		return "no signature"
	case t.total == 1:
		return "1 signature, which is not by a key of the policy"
	default:
		return fmt.Sprintf("%d signatures, none by a key of the policy", t.total)
	}
}
