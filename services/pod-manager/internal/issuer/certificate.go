// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// isDue reports whether the certificate in a Secret must be replaced: it is missing or invalid, half of its life is
// over, its SPIFFE ID differs from id, or no current authority signed it.
func isDue(data map[string][]byte, id mtls.ID, all authorities, now time.Time) bool {
	pair, err := tls.X509KeyPair(data[mtls.CertificateFile], data[mtls.KeyFile])
	if err != nil {
		return true
	}
	if found, err := mtls.IDOf(pair.Leaf); err != nil || found != id || pastHalf(pair.Leaf, now) {
		return true
	}
	roots := x509.NewCertPool()
	for _, one := range all {
		roots.AddCert(one.cert)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err != nil
}

// issueCertificate writes a new certificate with the SPIFFE ID id into data, the data of a Secret. It returns the
// certificate's expiry, which is not later than the expiry of the authority that signs it.
func (a authority) issueCertificate(
	data map[string][]byte, id mtls.ID, now time.Time, life time.Duration,
) (expires time.Time, err error) {
	template, key, err := prepareCertificate(now, life)
	if err != nil {
		return time.Time{}, err
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.URIs = []*url.URL{id.URL()}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return time.Time{}, fmt.Errorf("issue a certificate for %s: %w", id, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return time.Time{}, fmt.Errorf("encode the key of %s: %w", id, err)
	}
	data[mtls.CertificateFile] = encodePEM("CERTIFICATE", der)
	data[mtls.KeyFile] = encodePEM("PRIVATE KEY", private)
	return template.NotAfter, nil
}
