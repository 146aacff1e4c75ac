// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/guard"
)

// certificates is a policy with signers of all kinds.
const certificates = `
default: deny
signers:
- {name: release, keyFiles: [cosign.pub]}
- {name: ci, keyless: {trustedRootFile: root.json, identities: [{issuer: a, subject: b}]}}
- {name: bots, keyless: {trustedRootFile: root.json, identities: [{issuer: a, subjectPattern: 'bot-*'}]}}
- {name: notary, notation: {caFiles: [ca.crt], identities: ["C=US, ST=WA, O=example.com"]}}
rules:
- {name: revoked, images: [a.io/reads], action: deny, when: '!("ci" in image.signers)'}
- {name: signed, images: [a.io/*], action: allow, signers: [release, ci, notary]}
`

// writeTrust writes the files that the policy names beside a policy, and returns the name of that with the root.
func writeTrust(t *testing.T, policy string) (root string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(policy)
	root = filepath.Join(dir, "root.json")
	write(t, root, fmt.Sprintf(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1",`+
		`"certificateAuthorities":[{"certChain":{"certificates":[{"rawBytes":%q}]}}],`+
		`"tlogs":[{"publicKey":{"rawBytes":"AA=="}}]}`, base64.StdEncoding.EncodeToString(der)))
	write(t, filepath.Join(dir, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "cosign.pub"), key)
	return root
}

// newCertificates returns a guard with the policy.
func newCertificates(t *testing.T, v *verifier, log *slog.Logger) (g *guard.Guard, root string) {
	t.Helper()
	g = newGuard(t, "default: allow", func(cfg *guard.Config) {
		cfg.Resolver = v
		if log != nil {
			cfg.Telemetry.Log = log
		}
		root = writeTrust(t, cfg.File)
		write(t, cfg.File, certificates)
	})
	return g, root
}

// TestKindsThatAreNotVerifiedDeny has image-resolvers that verify signatures of some kinds only.
func TestKindsThatAreNotVerifiedDeny(t *testing.T) {
	const (
		keys     = imageresolverv1.SignerKind_SIGNER_KIND_PUBLIC_KEYS
		keyless  = imageresolverv1.SignerKind_SIGNER_KIND_KEYLESS
		notation = imageresolverv1.SignerKind_SIGNER_KIND_NOTATION
	)
	all, most := []imageresolverv1.SignerKind{notation, keyless, keys}, []imageresolverv1.SignerKind{keys, keyless}
	const old = "the image-resolver does not verify keyless signatures: update it"
	tests := map[string]struct {
		image   string
		kinds   []imageresolverv1.SignerKind
		signers []string
		says    string // empty if the function runs
	}{
		"an old one, signed by a key":     {"a.io/fn", nil, []string{"release"}, ""},
		"an old one, unsigned":            {"a.io/fn", nil, nil, "Found: no signature, and " + old},
		"an old one, and a condition":     {"a.io/reads", nil, nil, "signed it. Found: no signature, and " + old},
		"it knows, and a condition":       {"a.io/reads", nil, []string{"release"}, "signed by release, and " + old},
		"without notation":                {"a.io/fn", most, nil, "signatures of notation"},
		"without notation, and condition": {"a.io/reads", most, []string{"ci"}, "of notation"},
		"all":                             {"a.io/fn", all, []string{"notary"}, ""},
		"all, and a condition":            {"a.io/reads", all, []string{"ci"}, ""},
		"all, and a condition that holds": {"a.io/reads", all, []string{"release"}, "revoked"},
	}
	for name, tc := range tests {
		signatures := &imageresolverv1.Signatures{Signers: tc.signers, Kinds: tc.kinds}
		if len(tc.signers) == 0 {
			signatures.Found = "no signature"
		}
		g, _ := newCertificates(t, &verifier{signatures: signatures}, nil)
		_, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), request(tc.image))
		if (err == nil) != (tc.says == "") ||
			err != nil && (fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v of class %v, want %q", name, err, fault.Of(err), tc.says)
		}
	}
}

// TestSignersOfAllKindsAreSent has two with the same root, which is sent once.
func TestSignersOfAllKindsAreSent(t *testing.T) {
	v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}
	g, _ := newCertificates(t, v, nil)
	evaluate(t, g, "pod")
	got, roots := v.asked.GetSigners(), v.asked.GetTrustedRoots()
	if len(got) != 4 || len(roots) != 1 || !strings.Contains(string(roots[0]), "tlogs") {
		t.Fatalf("asked with %v", v.asked)
	}
	if ci := got[1]; len(ci.GetPublicKeys()) > 0 || ci.GetKeyless().GetIdentities()[0].GetSubject() != "b" ||
		ci.GetNotation() != nil {
		t.Errorf("a keyless signer: %v", ci)
	}
	if bots := got[2].GetKeyless(); bots.GetTrustedRoot() != 0 || bots.GetIdentities()[0].GetSubjectPattern() != "bot-*" {
		t.Errorf("one with a pattern: %v", bots)
	}
	if n := got[3].GetNotation(); len(n.GetAuthorities()) != 1 || n.GetIdentities()[0] != "C=US, ST=WA, O=example.com" {
		t.Errorf("one of notation: %v", n)
	}
}

// TestABrokenRootChangesNothing follows a trusted root that breaks, and is repaired.
func TestABrokenRootChangesNothing(t *testing.T) {
	v := &verifier{signatures: &imageresolverv1.Signatures{Signers: []string{"release"}}}
	log := make(lines, 100)
	g, root := newCertificates(t, v, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Watch(ctx) }()
	used := func() string {
		evaluate(t, g, "pod")
		return string(v.asked.GetTrustedRoots()[0])
	}
	log.await("policy in force")
	first := used()
	write(t, root, first[:len(first)/2])
	log.await("policy not changed")
	if used() != first {
		t.Error("a broken root has changed the policy")
	}
	write(t, root, first+"\n")
	log.await("policy in force")
	if used() != first+"\n" {
		t.Error("the new root is not used")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
