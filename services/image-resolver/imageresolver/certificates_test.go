// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testsign"
)

const (
	subject, issuer = "ci@example.com", "https://issuer.example.com"
	anotherImage    = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// certified is a registry, and signers with certificates beside those with keys.
type certified struct {
	*signing
	sigstore  *testsign.Sigstore
	authority *testsign.Authority
	roots     [][]byte
}

func newCertified(t *testing.T, change func(*imageresolver.Config)) *certified {
	t.Helper()
	c := &certified{newSigning(t, change), testsign.NewSigstore(t), testsign.NewAuthority(t), nil}
	c.roots = [][]byte{c.sigstore.TrustedRoot(t, testsign.RootOptions{})}
	c.signers = append(c.signers,
		&imageresolverv1.Signer{Name: "ci", Keyless: &imageresolverv1.Keyless{
			Identities: []*imageresolverv1.Identity{{Issuer: issuer, Subject: subject}},
		}},
		&imageresolverv1.Signer{Name: "bots", Keyless: &imageresolverv1.Keyless{
			Identities: []*imageresolverv1.Identity{{Issuer: issuer, SubjectPattern: "bot-*@example.com"}},
		}},
		&imageresolverv1.Signer{Name: "notary", Notation: &imageresolverv1.Notation{
			Authorities: [][]byte{c.authority.DER()}, Identities: []string{"C=US, ST=WA, O=example.com, CN=release"},
		}})
	return c
}

// verify asks who has signed an image.
func (c *certified) verify(t *testing.T, image string) (*imageresolverv1.ResolveImageResponse, error) {
	t.Helper()
	return c.resolver.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{
		Image: c.Host + "/" + image, Signers: c.signers, TrustedRoots: c.roots,
	})
}

// keyless puts a signature in cosign 2's form of what is about one digest beside another.
func (c *certified) keyless(t *testing.T, s *testsign.Sigstore, whom [2]string, of, digest string, logged bool) {
	t.Helper()
	payload := testregistry.Payload(of)
	signed := s.Sign(t, whom[0], whom[1], payload)
	if !logged {
		signed.Log = ""
	}
	c.PushSignatures(t, "fn", digest, []testregistry.Signed{
		{Payload: payload, Signature: signed.Value, Certificate: signed.Certificate, Log: signed.Log},
	})
}

// bundle puts a signature in cosign 3's form beside a digest.
func (c *certified) bundle(t *testing.T, name, of, predicate, digest string) {
	t.Helper()
	raw := testsign.JSON(t, c.sigstore.Bundle(t, name, issuer, of, predicate))
	c.PushArtifact(t, "fn", digest, testregistry.BundleArtifact(raw))
}

// envelope puts notation's signature beside a digest.
func (c *certified) envelope(t *testing.T, a *testsign.Authority, of, digest string, e testsign.Envelope) {
	t.Helper()
	c.PushArtifact(t, "fn", digest, testregistry.EnvelopeArtifact(a.Sign(t, of, e), e.Form))
}

// TestVerdictsOfCertificates prints the table of verdicts with -v.
func TestVerdictsOfCertificates(t *testing.T) {
	const none = "1 signature, which is not by a signer of the policy: "
	known := [2]string{subject, issuer}
	jws := testsign.Envelope{Form: testsign.JWS, Name: "release"}
	tests := []struct {
		name    string
		prepare func(t *testing.T, c *certified, digest string)
		want    string // how the verdict begins
	}{
		{"keyless", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, known, digest, digest, true)
		}, "signed by ci"},
		{"keyless, by a pattern", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, [2]string{"bot-7@example.com", issuer}, digest, digest, true)
		}, "signed by bots"},
		{"keyless, in a bundle", func(t *testing.T, c *certified, digest string) {
			c.bundle(t, subject, digest, signPredicate, digest)
		}, "signed by ci"},
		{"an attestation in a bundle", func(t *testing.T, c *certified, digest string) {
			c.bundle(t, subject, digest, "https://slsa.dev/provenance/v1", digest)
		}, "a signature by ci that is of no image"},
		{"the bundle of another image", func(t *testing.T, c *certified, digest string) {
			c.bundle(t, subject, anotherImage, signPredicate, digest)
		}, "a signature by ci that is of another image, " + anotherImage},
		{"another subject", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, [2]string{"eve@example.com", issuer}, digest, digest, true)
		}, none + `its certificate is for "eve@example.com" of the issuer "` + issuer + `"`},
		{"another subject, in a bundle", func(t *testing.T, c *certified, digest string) {
			c.bundle(t, "eve@example.com", digest, signPredicate, digest)
		}, none + `its certificate is for "eve@example.com" of the issuer "` + issuer + `"`},
		{"another issuer", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, [2]string{subject, "https://other"}, digest, digest, true)
		}, none + `its certificate is for "ci@example.com" of the issuer "https://other"`},
		{"another image", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, known, anotherImage, digest, true)
		}, "a signature by ci that is of another image, " + anotherImage},
		{"in no log", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, c.sigstore, known, digest, digest, false)
		}, none + "it is in no transparency log"},
		{"another root", func(t *testing.T, c *certified, digest string) {
			c.keyless(t, testsign.NewSigstore(t), known, digest, digest, true)
		}, none + "its certificate is by the authority"},
		{"a root that has ended", func(t *testing.T, c *certified, digest string) {
			c.roots[0] = c.sigstore.TrustedRoot(t, testsign.RootOptions{Until: time.Now().Add(-time.Minute)})
			c.keyless(t, c.sigstore, known, digest, digest, true)
		}, none + "its certificate is by an authority that the trusted root trusts until"},
		{"a broken root", func(t *testing.T, c *certified, digest string) {
			c.roots[0] = c.roots[0][:100]
			c.keyless(t, c.sigstore, known, digest, digest, true)
		}, "error invalid"},
		{"a key beside it", func(t *testing.T, c *certified, digest string) {
			c.bundle(t, subject, digest, signPredicate, digest)
			c.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, c.release))
		}, "signed by release, ci"},
		{"notation, JWS", func(t *testing.T, c *certified, digest string) {
			c.envelope(t, c.authority, digest, digest, jws)
		}, "signed by notary"},
		{"notation, COSE", func(t *testing.T, c *certified, digest string) {
			c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.COSE, Name: "release"})
		}, "signed by notary"},
		{"notation, another subject", func(t *testing.T, c *certified, digest string) {
			c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.JWS, Name: "eve"})
		}, none + `its certificate is for "CN=eve,O=example.com,ST=WA,C=US"`},
		{"notation, another authority", func(t *testing.T, c *certified, digest string) {
			c.envelope(t, testsign.NewAuthority(t), digest, digest, jws)
		}, none + `its certificate is for "CN=release,`},
		{"notation, another image", func(t *testing.T, c *certified, digest string) {
			c.envelope(t, c.authority, anotherImage, digest, jws)
		}, "a signature by notary that is of another image, " + anotherImage},
		{"notation, expired", func(t *testing.T, c *certified, digest string) {
			expired := testsign.Envelope{Form: testsign.JWS, Name: "release", CertificateUntil: time.Now().Add(-time.Minute)}
			c.envelope(t, c.authority, digest, digest, expired)
		}, none + `its certificate is for "CN=release,`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCertified(t, nil)
			digest := digestOf(t, c.Push(t, "fn:v1", function))
			tc.prepare(t, c, digest)
			got, err := c.verify(t, "fn:v1")
			t.Logf("%-30s %s", tc.name, verdict(got, err))
			if words := verdict(got, err); !strings.HasPrefix(words, tc.want) ||
				strings.HasPrefix(tc.want, "signed by") && words != tc.want {
				t.Errorf("%s, %v, want %s", words, err, tc.want)
			}
		})
	}
}

// TestCertifiedSignatureBelongsToADigest moves tags.
func TestCertifiedSignatureBelongsToADigest(t *testing.T) {
	c := newCertified(t, func(cfg *imageresolver.Config) { cfg.Cache.TagTTL = time.Nanosecond })
	image := c.Push(t, "fn:v1", function)
	digest := digestOf(t, image)
	c.bundle(t, subject, digest, signPredicate, digest)
	c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.JWS, Name: "release"})
	c.Tag(t, "fn:v2", image)
	c.Tag(t, "fn:v1", c.Push(t, "fn:other", function)) // moved
	for tag, want := range map[string]string{"v2": "signed by ci, notary", "v1": "no signature", "other": "no signature"} {
		if got, err := c.verify(t, "fn:"+tag); verdict(got, err) != want {
			t.Errorf("%s: %s, %v, want %s", tag, verdict(got, err), err, want)
		}
	}
}

// TestVerdictsEndWithCertificates has a signature that expires long before its verdict would be refreshed.
func TestVerdictsEndWithCertificates(t *testing.T) {
	c := newCertified(t, func(cfg *imageresolver.Config) { cfg.Cache.TagTTL = time.Hour })
	digest := digestOf(t, c.Push(t, "fn:v1", function))
	until := time.Now().Add(3 * time.Second).Truncate(time.Second)
	c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.JWS, Name: "release", Until: until})
	got, err := c.verify(t, "fn:v1")
	if time.Now().Before(until) && verdict(got, err) != "signed by notary" {
		t.Fatalf("%s, %v", verdict(got, err), err)
	}
	<-time.After(time.Until(until))
	got, err = c.verify(t, "fn:v1")
	if !strings.Contains(verdict(got, err), "digital signature has expired") {
		t.Errorf("%s, %v, want that it has expired", verdict(got, err), err)
	}
}

// TestKindsAreStated tells gateways what they may rely on.
func TestKindsAreStated(t *testing.T) {
	s := newSigning(t, nil)
	s.Push(t, "fn:v1", function)
	got, err := s.verify(t, "fn:v1")
	if kinds := got.GetSignatures().GetKinds(); err != nil || len(kinds) != 3 {
		t.Errorf("kinds %v, %v", kinds, err)
	}
}

// TestNotationIsReadOnlyIfWanted has an image with a signature that no signer of the policy could make.
func TestNotationIsReadOnlyIfWanted(t *testing.T) {
	c := newCertified(t, nil)
	digest := digestOf(t, c.Push(t, "fn:v1", function))
	c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.JWS, Name: "release"})
	if got, err := c.signing.verify(t, "fn:v1"); fault.Of(err) != fault.Invalid {
		t.Errorf("a keyless signer without a root: %s, %v", verdict(got, err), err)
	}
	c.signers = c.signers[:2]
	if got, err := c.verify(t, "fn:v1"); verdict(got, err) != "no signature" {
		t.Errorf("%s, %v", verdict(got, err), err)
	}
}

// TestVerificationsAreBounded has many signatures, and signers with many keys: the one that counts comes last.
func TestVerificationsAreBounded(t *testing.T) {
	c := newCertified(t, nil)
	c.signers = nil
	for i := range 20 {
		s := &imageresolverv1.Signer{Name: "s" + string(rune('a'+i))}
		for range 10 {
			_, public := testregistry.Key(t)
			s.PublicKeys = append(s.PublicKeys, public)
		}
		c.signers = append(c.signers, s)
	}
	digest := digestOf(t, c.Push(t, "fn:v1", function))
	signed := testregistry.Sign(t, digest, c.stranger)
	for len(signed) < 50 {
		signed = append(signed, testregistry.Sign(t, digest, c.stranger)[0])
	}
	c.PushSignatures(t, "fn", digest, signed)
	_, err := c.verify(t, "fn:v1")
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "in 4000 verifications, which is the limit") {
		t.Errorf("%v of class %v, want precondition with the limit", err, fault.Of(err))
	}
}

// TestWithoutVerifiers has a program that verifies signatures by keys alone: signers of other kinds have signed
// nothing, and the answer says which kinds count.
func TestWithoutVerifiers(t *testing.T) {
	c := newCertified(t, func(cfg *imageresolver.Config) { cfg.Verifiers = nil })
	digest := digestOf(t, c.Push(t, "fn:v1", function))
	c.keyless(t, c.sigstore, [2]string{subject, issuer}, digest, digest, true)
	c.envelope(t, c.authority, digest, digest, testsign.Envelope{Form: testsign.JWS, Name: "release"})
	got, err := c.verify(t, "fn:v1")
	if words := verdict(got, err); !strings.HasPrefix(words, "1 signature, which is not by a key of the policy") {
		t.Errorf("%s, want that no signer has signed it", words)
	}
	kinds := got.GetSignatures().GetKinds()
	if len(kinds) != 1 || kinds[0] != imageresolverv1.SignerKind_SIGNER_KIND_PUBLIC_KEYS {
		t.Errorf("the kinds %v count, want keys alone", kinds)
	}
}
