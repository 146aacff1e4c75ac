// SPDX-License-Identifier: Apache-2.0

package keyless_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/data"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/keyless"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testsign"
)

const (
	subject, issuer = "ci@example.com", "https://issuer.example.com"
	payload         = "what is signed"
)

func newRoot(t testing.TB, text []byte) *keyless.Root {
	t.Helper()
	root, err := keyless.NewRoot(text)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestPublicBundle verifies a bundle of sigstore's public instance, whose certificate is in a certificate log.
func TestPublicBundle(t *testing.T) {
	text, err := data.TrustedRoot(t, "public-good.json").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	raw := testsign.JSON(t, data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json").Bundle)
	signed, err := newRoot(t, text).VerifyBundle(raw)
	if err != nil || signed.Issuer != "https://token.actions.githubusercontent.com" ||
		signed.Subject != "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main" ||
		!strings.Contains(string(signed.Text), "provenance") {
		t.Errorf("%+v, %v", signed, err)
	}
	other := newRoot(t, testsign.NewSigstore(t).TrustedRoot(t, testsign.RootOptions{}))
	if _, err := other.VerifyBundle(raw); err == nil {
		t.Error("verified with another root")
	}
}

// proof returns what cosign 2 writes of a signature.
func proof(s testsign.Signature) certified.Proof {
	return certified.Proof{Certificate: s.Certificate, Log: s.Log}
}

func TestPayloads(t *testing.T) {
	sigstore, stranger := testsign.NewSigstore(t), testsign.NewSigstore(t)
	signed, other := sigstore.Sign(t, subject, issuer, payload), sigstore.Sign(t, subject, issuer, payload)
	root := sigstore.TrustedRoot(t, testsign.RootOptions{})
	ended := testsign.RootOptions{Until: time.Now().Add(-time.Minute)}
	tests := map[string]struct {
		root    []byte
		payload string
		proof   certified.Proof
		says    string // empty if it is verified
	}{
		"signed":          {root, payload, proof(signed), ""},
		"another payload": {root, payload + ".", proof(signed), "could not verify message"},
		"no log":          {root, payload, certified.Proof{Certificate: signed.Certificate}, "it is in no transparency log"},
		"the entry of another signature": {
			root, payload, certified.Proof{Certificate: signed.Certificate, Log: other.Log}, "does not match",
		},
		"another time in the entry": {
			root, payload, certified.Proof{
				Certificate: signed.Certificate, Log: strings.Replace(signed.Log, `"integratedTime":1`, `"integratedTime":2`, 1),
			}, "failed to verify log inclusion",
		},
		"a broken entry": {root, payload, certified.Proof{Certificate: signed.Certificate, Log: "{"}, "its log entry"},
		"a broken timestamp": {
			root, payload, certified.Proof{Certificate: signed.Certificate, Timestamp: "{}"}, "its timestamp cannot be read",
		},
		"a broken certificate": {root, payload, certified.Proof{Certificate: "x"}, "its certificate cannot be read"},
		"another authority": {
			stranger.TrustedRoot(t, testsign.RootOptions{}), payload, proof(signed), "which the trusted root does not have",
		},
		"an authority that has ended": {sigstore.TrustedRoot(t, ended), payload, proof(signed), "update the trusted root"},
		"a certificate that is in no log": {
			sigstore.TrustedRoot(t, testsign.RootOptions{CertificateLog: true}), payload, proof(signed), "certificate timestamp",
		},
	}
	value, err := base64.StdEncoding.DecodeString(signed.Value)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		got, err := newRoot(t, tc.root).VerifyPayload([]byte(tc.payload), value, tc.proof)
		if tc.says == "" && (err != nil || got.Issuer != issuer || got.Subject != subject || string(got.Text) != payload) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

func TestBundles(t *testing.T) {
	sigstore := testsign.NewSigstore(t)
	root := newRoot(t, sigstore.TrustedRoot(t, testsign.RootOptions{}))
	bundle := sigstore.Bundle(t, subject, issuer, "sha256:abc", "predicate")
	got, err := root.VerifyBundle(testsign.JSON(t, bundle))
	if err != nil || got.Issuer != issuer || got.Subject != subject || !strings.Contains(string(got.Text), `"abc"`) {
		t.Errorf("%+v, %v", got, err)
	}
	text := string(testsign.JSON(t, bundle))
	for name, raw := range map[string]string{
		"two envelopes": strings.Replace(text, `"dsseEnvelope"`, `"dsse_envelope":{}, "dsseEnvelope"`, 1),
		"no JSON":       "{", "nothing": "{}", "no bundle": `{"mediaType":"a"}`,
	} {
		if _, err := root.VerifyBundle([]byte(raw)); err == nil {
			t.Errorf("%s: verified", name)
		}
	}
	envelope := bundle.GetDsseEnvelope()
	envelope.Payload = []byte(strings.ReplaceAll(string(envelope.GetPayload()), "abc", "abd"))
	if _, err := root.VerifyBundle(testsign.JSON(t, bundle)); err == nil {
		t.Error("another statement: verified")
	}
	bundle.VerificationMaterial.TlogEntries = nil
	_, err = root.VerifyBundle(testsign.JSON(t, bundle))
	if err == nil || !strings.Contains(err.Error(), "no transparency log") {
		t.Errorf("no log: %v", err)
	}
	bundle.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{
		PublicKey: &common.PublicKeyIdentifier{Hint: "a key"},
	}
	if _, err := root.VerifyBundle(testsign.JSON(t, bundle)); !errors.Is(err, certified.ErrNoCertificate) {
		t.Errorf("by a key: %v", err)
	}
}

func TestRootsThatAreRejected(t *testing.T) {
	text := string(testsign.NewSigstore(t).TrustedRoot(t, testsign.RootOptions{}))
	for name, broken := range map[string]string{
		"nothing": "", "half": text[:len(text)/2], "another type": strings.Replace(text, "trustedroot", "root", 1),
	} {
		if _, err := keyless.NewRoot([]byte(broken)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzProofs has no annotations on which the process ends, and none that are verified.
func FuzzProofs(f *testing.F) {
	sigstore := testsign.NewSigstore(f)
	root := newRoot(f, sigstore.TrustedRoot(f, testsign.RootOptions{}))
	signed := sigstore.Sign(f, subject, issuer, payload)
	f.Add([]byte(signed.Value), signed.Certificate, signed.Log, "")
	f.Add([]byte("x"), signed.Certificate, `{"SignedEntryTimestamp":"YQ==","Payload":{"body":"e30=","logID":"00"}}`,
		`{"SignedRFC3161Timestamp":"YQ=="}`)
	f.Fuzz(func(t *testing.T, value []byte, certificate, log, timestamp string) {
		p := certified.Proof{Certificate: certificate, Log: log, Timestamp: timestamp}
		if got, err := root.VerifyPayload([]byte("another payload"), value, p); err == nil {
			t.Errorf("%+v", got)
		}
	})
}

// FuzzBundles has no bundle on which the process ends, and none of another identity.
func FuzzBundles(f *testing.F) {
	sigstore := testsign.NewSigstore(f)
	root := newRoot(f, sigstore.TrustedRoot(f, testsign.RootOptions{}))
	f.Add(testsign.JSON(f, sigstore.Bundle(f, subject, issuer, "sha256:abc", "predicate")))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",` +
		`"verificationMaterial":{"certificate":{}},"dsseEnvelope":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := root.VerifyBundle(raw); err == nil && (got.Issuer != issuer || got.Subject != subject) {
			t.Errorf("%+v", got)
		}
	})
}
