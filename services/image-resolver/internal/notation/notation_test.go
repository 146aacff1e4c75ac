// SPDX-License-Identifier: Apache-2.0

package notation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"

	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/notation"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testsign"
)

var digest = "sha256:" + strings.Repeat("a", 64)

func newVerifier(t testing.TB, authority *testsign.Authority, identities ...string) *notation.Verifier {
	t.Helper()
	v, err := notation.New(&signer.Notation{Authorities: [][]byte{authority.DER()}, Identities: identities})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEnvelopes has certificates with addresses for revocation lists, where nothing listens.
func TestEnvelopes(t *testing.T) {
	authority, now := testsign.NewAuthority(t), time.Now().Truncate(time.Second)
	v := newVerifier(t, authority, "C=US, ST=WA, O=example.com, CN=release", "C=US,ST=WA,O=example.com,CN=audit")
	const jws = testsign.JWS
	soon := now.Add(time.Minute)
	tests := map[string]struct {
		by    *testsign.Authority
		e     testsign.Envelope
		until time.Time // zero if it is not verified
		says  string
	}{
		"JWS":  {authority, testsign.Envelope{Form: jws, CertificateUntil: soon}, soon, ""},
		"COSE": {authority, testsign.Envelope{Form: testsign.COSE, Until: soon}, soon, ""},
		"another identity": {
			authority,
			testsign.Envelope{Form: testsign.JWS, Name: "stranger"},
			time.Time{},
			`its certificate is for "CN=stranger,O=example.com,ST=WA,C=US"`,
		},
		"another authority": {
			testsign.NewAuthority(t), testsign.Envelope{Form: jws}, time.Time{}, "any trusted certificate",
		},
		"a signature that has expired": {
			authority, testsign.Envelope{Form: jws, Until: now.Add(-time.Minute)}, time.Time{}, "signature has expired",
		},
		"a certificate that has expired": {
			authority, testsign.Envelope{Form: testsign.JWS, CertificateUntil: now.Add(-time.Minute)}, time.Time{}, "expired at",
		},
		"a signing authority, which states the time itself": {
			authority,
			testsign.Envelope{Form: jws, Scheme: signature.SigningSchemeX509SigningAuthority},
			time.Time{},
			"no trusted certificates are found",
		},
	}
	for name, tc := range tests {
		if tc.e.Name == "" {
			tc.e.Name = "release"
		}
		got, err := v.Verify(t.Context(), tc.by.Sign(t, digest, tc.e), tc.e.Form)
		if tc.until.IsZero() {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %+v, %v, want %q", name, got, err, tc.says)
			}
			continue
		}
		if err != nil || got.Digest != digest || !got.Until.Equal(tc.until) {
			t.Errorf("%s: %+v, %v, want until %v", name, got, err, tc.until)
		}
	}
}

func TestEnvelopesThatAreBroken(t *testing.T) {
	authority := testsign.NewAuthority(t)
	v := newVerifier(t, authority, "C=US, ST=WA, O=example.com")
	raw := authority.Sign(t, digest, testsign.Envelope{Form: testsign.JWS, Name: "release"})
	payload := strings.Index(string(raw), `"payload":"`) + 40
	changed := []byte(string(raw))
	changed[payload] ^= 1
	for name, tc := range map[string]struct{ raw, form string }{
		"another payload": {string(changed), testsign.JWS}, "another form": {string(raw), testsign.COSE},
		"an unknown form": {string(raw), "text/plain"}, "nothing": {"", testsign.JWS}, "no envelope": {"{}", testsign.JWS},
	} {
		if got, err := v.Verify(t.Context(), []byte(tc.raw), tc.form); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSignersThatNotationRejects(t *testing.T) {
	authority := testsign.NewAuthority(t)
	_, err := notation.New(&signer.Notation{Authorities: [][]byte{authority.DER()}, Identities: []string{"CN=x"}})
	if err == nil {
		t.Error("a subject without an organization is accepted")
	}
}

// FuzzEnvelopes has no envelope on which the process ends, and none that is verified as one of another image.
func FuzzEnvelopes(f *testing.F) {
	authority := testsign.NewAuthority(f)
	v := newVerifier(f, authority, "C=US, ST=WA, O=example.com")
	for i, form := range []string{testsign.JWS, testsign.COSE} {
		f.Add(authority.Sign(f, digest, testsign.Envelope{Form: form, Name: "release"}), i == 0)
	}
	f.Fuzz(func(t *testing.T, raw []byte, jws bool) {
		form := testsign.COSE
		if jws {
			form = testsign.JWS
		}
		if got, err := v.Verify(t.Context(), raw, form); err == nil && got.Digest != digest {
			t.Errorf("%+v", got)
		}
	})
}
