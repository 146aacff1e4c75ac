// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/guard"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
)

// key and otherKey are public keys.
const (
	key = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZcl9u601YB8Ia732iWnJpHP2DHaL
5RRI7pvEuZRTO3vGBKIz9ik8ufCV6mfJuxhJnpgZ6iBa9iQVvLP2FpATZg==
-----END PUBLIC KEY-----`
	otherKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAqUbxmaV2v5n8G5V84iIvMSqiLYFTPdK/EC4vGuaN8c0=
-----END PUBLIC KEY-----`
)

var signed = "default: deny\nsigners:\n- name: release\n  keys: |\n    " + strings.ReplaceAll(key, "\n", "\n    ") +
	"\nrules: [{name: signed, images: [a.io/*], action: allow, signers: [release]}]\n"

// verifier is a resolver that knows who has signed, and keeps what it was asked.
type verifier struct {
	signatures *imageresolverv1.Signatures
	err        error
	asked      *imageresolverv1.ResolveImageRequest
}

func (v *verifier) ResolveImage(_ context.Context, req *imageresolverv1.ResolveImageRequest) (
	*imageresolverv1.ResolveImageResponse, error,
) {
	v.asked = req
	return &imageresolverv1.ResolveImageResponse{Digest: "sha256:good", Signatures: v.signatures}, v.err
}

// TestOnlySignedImagesRun asks each evaluator.
func TestOnlySignedImagesRun(t *testing.T) {
	tests := map[string]struct {
		resolver guard.Resolver
		class    fault.Class // of the error
		says     string      // empty if the function runs
	}{
		"signed": {&verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}, 0, ""},
		"unsigned": {
			&verifier{signatures: &imageresolverv1.Signatures{Found: "no signature"}}, fault.Denied,
			"a.io/fn:v1@sha256:good has to be signed by release. Found: no signature",
		},
		"the registry fails": {
			&verifier{err: fault.New(fault.Unavailable, "it is away")}, fault.Unavailable,
			"verify the signatures of a.io/fn for the policy: it is away",
		},
		"an old image-resolver": {&verifier{}, fault.Denied, "the image-resolver does not verify signatures"},
		"no image-resolver":     {nil, fault.Denied, "set FNR_IMAGE_RESOLVER"},
	}
	for name, tc := range tests {
		for _, evaluator := range []string{"exec", "sandbox", "pod"} {
			g := newGuard(t, signed, func(cfg *guard.Config) { cfg.Resolver = tc.resolver })
			ran := evaluate(t, g, evaluator)
			class, says := tc.class, tc.says
			if evaluator == "exec" {
				class, says = fault.Denied, "Found: a local binary, which has no signature"
			}
			if (ran.err == nil) != (says == "") || ran.err == nil && ran.digest != "sha256:good" {
				t.Errorf("%s, %s: ran %q, %v, want %q", name, evaluator, ran.digest, ran.err, says)
			}
			if ran.err != nil && (ran.digest != "" || fault.Of(ran.err) != class || !strings.Contains(ran.err.Error(), says)) {
				t.Errorf("%s, %s: %v of class %v, want %v with %q", name, evaluator, ran.err, fault.Of(ran.err), class, says)
			}
		}
	}
}

// TestConditionsNeedVerifiedSignatures has a rule that rejects what a signer has signed, where nothing is verified.
func TestConditionsNeedVerifiedSignatures(t *testing.T) {
	content := strings.Replace(signed, "rules: [",
		`rules: [{name: revoked, action: deny, when: '"release" in image.signers'}, `, 1)
	for name, resolver := range map[string]guard.Resolver{"none": nil, "an old one": &verifier{}} {
		g := newGuard(t, content, func(cfg *guard.Config) { cfg.Resolver = resolver })
		ran := evaluate(t, g, "pod")
		if fault.Of(ran.err) != fault.Denied || !strings.Contains(ran.err.Error(), "reads who has signed") {
			t.Errorf("image-resolver: %s: %v, want a denial", name, ran.err)
		}
		// Audit events have the verdict and the rule of this error.
		if denied, ok := errors.AsType[*evaluation.DeniedError](ran.err); !ok || denied.Rule != "revoked" {
			t.Errorf("image-resolver: %s: %#v, want the denial of a rule", name, ran.err)
		}
	}
}

// TestEarlierRulesNeedNoSignatures has a rule that decides before the one that reads who has signed the image.
func TestEarlierRulesNeedNoSignatures(t *testing.T) {
	const open, revoked = `{name: open, action: allow, when: 'caller.id == ""'}, `,
		`{name: revoked, action: deny, when: '"release" in image.signers'}, `
	for rules, says := range map[string]string{
		open + revoked: "", revoked + open: "reads who has signed",
		// The rule that decides requires a signature.
		"": "has to be signed by release",
		open[:len(open)-3] + ", signers: [release]}, " + revoked: "has to be signed by release",
	} {
		g := newGuard(t, strings.Replace(signed, "rules: [", "rules: ["+rules, 1), nil)
		ran := evaluate(t, g, "pod")
		if (ran.err == nil) != (says == "") || ran.err != nil && !strings.Contains(ran.err.Error(), says) {
			t.Errorf("%s without an image-resolver: %v, want %q", rules, ran.err, says)
		}
	}
}

// outcome is the digest that an evaluator had to run, or the error.
type outcome struct {
	digest string
	err    error
}

func evaluate(t *testing.T, g *guard.Guard, name string) (out outcome) {
	t.Helper()
	run := func(_ context.Context, req evaluation.Request) error {
		out.digest = req.Digest
		return nil
	}
	_, out.err = g.Wrap(evaluator{name: name, run: run}).Evaluate(t.Context(), request("a.io/fn"))
	return out
}

// TestConditionsNeedAllSignatures has an image of which not all signatures could be read: one of them may be that of
// the signer whose images a condition rejects. Rules with signers need one that was verified.
func TestConditionsNeedAllSignatures(t *testing.T) {
	const unread = "a manifest cannot be read"
	for name, tc := range map[string]struct {
		rules, signer, says string
	}{
		"a signer that is verified": {"", "release", ""},
		"another one":               {"", "team", "has to be signed by release. Found: signed by team, and " + unread},
		"a condition": {
			`{name: revoked, action: deny, when: '"team" in image.signers'}, `, "release",
			"Found: signed by release, and " + unread,
		},
	} {
		v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{tc.signer}, Unread: unread}}
		g := newGuard(t, strings.Replace(signed, "rules: [", "rules: ["+tc.rules, 1),
			func(cfg *guard.Config) { cfg.Resolver = v })
		ran := evaluate(t, g, "pod")
		if (ran.err == nil) != (tc.says == "") ||
			ran.err != nil && (fault.Of(ran.err) != fault.Denied || !strings.Contains(ran.err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", name, ran.err, tc.says)
		}
	}
}

// TestSignersAreRecorded has an image that an evaluator takes in another form than the next one.
func TestSignersAreRecorded(t *testing.T) {
	v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}
	g := newGuard(t, signed, func(cfg *guard.Config) { cfg.Resolver = v })
	req := request("a.io/fn")
	req.Measured = new(measure.Evaluation)
	for _, step := range []struct{ evaluator, want string }{{"pod", "release"}, {"exec", ""}, {"sandbox", "release"}} {
		_, _ = g.Wrap(evaluator{name: step.evaluator}).Evaluate(t.Context(), req)
		if got := strings.Join(req.Measured.Signers(), " "); got != step.want {
			t.Errorf("%s: signers %q, want %q", step.evaluator, got, step.want)
		}
	}
}

// TestResolverIsAskedWithTheKeysOfTheSigners asks it only about images that need a signature.
func TestResolverIsAskedWithTheKeysOfTheSigners(t *testing.T) {
	v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}
	g := newGuard(t, signed, func(cfg *guard.Config) { cfg.Resolver = v })
	if _, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), request("b.io/fn")); err == nil || v.asked != nil {
		t.Errorf("another image: %v, and the resolver was asked %v", err, v.asked)
	}
	evaluate(t, g, "pod")
	block, _ := pem.Decode([]byte(key))
	got := v.asked.GetSigners()
	if len(got) != 1 || got[0].GetName() != "release" || string(got[0].GetPublicKeys()[0]) != string(block.Bytes) {
		t.Errorf("asked with %v", got)
	}
}

// TestKeyFilesAreFollowed replaces a key, breaks it, and repairs it, without a change of the policy's file.
func TestKeyFilesAreFollowed(t *testing.T) {
	v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}
	log := make(lines, 100)
	keys := ""
	g := newGuard(t, "default: allow", func(cfg *guard.Config) {
		cfg.Resolver, cfg.Telemetry.Log = v, slog.New(slog.NewTextHandler(log, nil))
		keys = filepath.Join(filepath.Dir(cfg.File), "cosign.pub")
		write(t, keys, key)
		write(t, cfg.File, "default: deny\nsigners: [{name: release, keyFiles: [cosign.pub]}]\n"+
			"rules: [{name: signed, action: allow, signers: [release]}]\n")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Watch(ctx) }()
	used := func() string {
		evaluate(t, g, "pod")
		return string(v.asked.GetSigners()[0].GetPublicKeys()[0])
	}
	log.await("policy in force")
	first := used()
	write(t, keys, "broken")
	log.await("policy not changed")
	if used() != first {
		t.Error("a broken key has changed the policy")
	}
	write(t, keys, otherKey)
	log.await("policy in force")
	if used() == first {
		t.Error("the new key is not used")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
