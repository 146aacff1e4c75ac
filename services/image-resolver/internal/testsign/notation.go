// SPDX-License-Identifier: Apache-2.0

package testsign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose" // for [signature.NewEnvelope]
	_ "github.com/notaryproject/notation-core-go/signature/jws"  // for [signature.NewEnvelope]
)

// The forms of envelopes.
const (
	JWS  = "application/jose+json"
	COSE = "application/cose"
)

// Authority is an authority for certificates, as notation uses them.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a key of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	a.certificate, a.key = a.issue(t, "authority", time.Now().Add(24*time.Hour))
	return a
}

// DER returns the authority's certificate.
func (a *Authority) DER() []byte { return a.certificate.Raw }

// issue returns a certificate: of itself, if the authority has none yet.
func (a *Authority) issue(t testing.TB, name string, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		Subject: pkix.Name{
			CommonName: name, Country: []string{"US"}, Province: []string{"WA"}, Organization: []string{"example.com"},
		},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		CRLDistributionPoints: []string{"http://127.0.0.1:1/crl"}, OCSPServer: []string{"http://127.0.0.1:1/ocsp"},
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageCertSign, nil
		template.IsCA, template.BasicConstraintsValid = true, true
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	check(t, err)
	certificate, err := x509.ParseCertificate(der)
	check(t, err)
	return certificate, key
}

// Envelope is what is special in an envelope.
type Envelope struct {
	// Form is JWS or COSE.
	Form string
	// Name is the common name in the certificate, which has C=US, ST=WA and O=example.com besides.
	Name string
	// CertificateUntil is when the certificate expires, and Until when the signature does; zero for later.
	CertificateUntil, Until time.Time
	// Scheme is that of the signature; empty for that of authorities.
	Scheme signature.SigningScheme
}

// Sign signs a digest.
func (a *Authority) Sign(t testing.TB, digest string, e Envelope) []byte {
	t.Helper()
	until := e.CertificateUntil
	if until.IsZero() {
		until = time.Now().Add(time.Hour)
	}
	if e.Scheme == "" {
		e.Scheme = signature.SigningSchemeX509
	}
	certificate, key := a.issue(t, e.Name, until)
	signer, err := signature.NewLocalSigner([]*x509.Certificate{certificate, a.certificate}, key)
	check(t, err)
	envelope, err := signature.NewEnvelope(e.Form)
	check(t, err)
	raw, err := envelope.Sign(&signature.SignRequest{
		Payload: signature.Payload{
			ContentType: "application/vnd.cncf.notary.payload.v1+json",
			Content: fmt.Appendf(nil, `{"targetArtifact":{"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
				`"digest":%q,"size":1}}`, digest),
		},
		Signer: signer, SigningTime: time.Now().Add(-time.Hour), Expiry: e.Until,
		SigningScheme: e.Scheme, SigningAgent: "test",
	})
	check(t, err)
	return raw
}
