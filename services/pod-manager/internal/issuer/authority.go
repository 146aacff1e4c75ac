// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// authority is a certificate authority: its certificate, and the private key that signs other certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// authorities contains the trusted certificate authorities, oldest first.
type authorities []authority

// maxAuthorities is the maximum number of certificate authorities in a Secret. Normally, a Secret contains one
// authority, or two while a new authority replaces an old authority.
const maxAuthorities = 8

// parseAuthorities decodes the certificate authorities in the data of a Secret, which may be empty. Malformed data is
// an error, and stays in the Secret. Its replacement by new authorities would break the trust between all programs.
func parseAuthorities(data map[string][]byte) (authorities, error) {
	certs, err := decodeBlocks(data[mtls.AuthoritiesFile], x509.ParseCertificate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mtls.AuthoritiesFile, err)
	}
	keys, err := decodeBlocks(data[mtls.KeyFile], parseKey)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mtls.KeyFile, err)
	}
	if len(certs) != len(keys) || len(certs) > maxAuthorities {
		return nil, fmt.Errorf("%d certificates and %d keys of authorities, want as many, and at most %d",
			len(certs), len(keys), maxAuthorities)
	}
	all := make(authorities, 0, len(certs))
	for n, cert := range certs {
		if !keys[n].PublicKey.Equal(cert.PublicKey) {
			return nil, fmt.Errorf("key %d is of another certificate", n+1)
		}
		all = append(all, authority{cert, keys[n]})
	}
	return all, nil
}

// ensureValid returns the authorities that have not expired. Once half of the newest authority's life is over, it adds
// a new authority, so that programs trust the new authority before the present authority expires.
func (a authorities) ensureValid(now time.Time, life time.Duration) (authorities, error) {
	valid := slices.DeleteFunc(slices.Clone(a), func(one authority) bool { return now.After(one.cert.NotAfter) })
	if len(valid) > 0 && !pastHalf(valid[len(valid)-1].cert, now) {
		return valid, nil
	}
	next, err := newAuthority(now, life)
	if err != nil {
		return nil, err
	}
	return append(valid, next), nil
}

// chooseSigner returns the authority that signs new certificates: the newest authority that all programs trust. All
// programs trust an authority once its age has reached the given duration. If no authority is old enough, the oldest
// authority signs.
func (a authorities) chooseSigner(now time.Time, spread time.Duration) authority {
	for _, one := range slices.Backward(a) {
		if now.Sub(one.cert.NotBefore) >= spread {
			return one
		}
	}
	return a[0]
}

// encodeBundle returns the certificates of the authorities as PEM.
func (a authorities) encodeBundle() []byte {
	var all []byte
	for _, one := range a {
		all = append(all, encodePEM("CERTIFICATE", one.cert.Raw)...)
	}
	return all
}

// writeSecret writes the authorities and their private keys into the data of a Secret.
func (a authorities) writeSecret(data map[string][]byte) error {
	var keys []byte
	for _, one := range a {
		der, err := x509.MarshalPKCS8PrivateKey(one.key)
		if err != nil {
			return err
		}
		keys = append(keys, encodePEM("PRIVATE KEY", der)...)
	}
	data[mtls.AuthoritiesFile] = a.encodeBundle()
	data[mtls.KeyFile] = keys
	return nil
}

func (a authorities) equalTo(others authorities) bool {
	return slices.EqualFunc(a, others, func(x, y authority) bool { return x.cert.Equal(y.cert) })
}

// newAuthority creates a certificate authority, which may sign certificates of programs, but not of further
// authorities.
func newAuthority(now time.Time, life time.Duration) (authority, error) {
	template, key, err := prepareCertificate(now, life)
	if err != nil {
		return authority{}, err
	}
	// All authorities have the same name, so a random serial number in the subject distinguishes them.
	template.Subject = pkix.Name{CommonName: "function-runner", SerialNumber: rand.Text()}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("create an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key}, err
}

// clockSkew is the time by which certificates are backdated, so that they are valid on nodes whose clocks are behind.
// The time is shorter for certificates with a short life.
const clockSkew = 5 * time.Minute

// prepareCertificate returns a new private key, and a certificate template that contains only the validity period.
// Package x509 adds a random serial number.
func prepareCertificate(now time.Time, life time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create a key: %w", err)
	}
	return &x509.Certificate{NotBefore: now.Add(-min(clockSkew, life/40)), NotAfter: now.Add(life)}, key, nil
}

// pastHalf reports whether half of a certificate's life is over.
func pastHalf(cert *x509.Certificate, now time.Time) bool {
	return now.Sub(cert.NotBefore) >= cert.NotAfter.Sub(cert.NotBefore)/2
}

// decodeBlocks parses each block of a PEM file.
func decodeBlocks[T any](content []byte, parse func(der []byte) (T, error)) ([]T, error) {
	var all []T
	for len(bytes.TrimSpace(content)) > 0 {
		block, rest := pem.Decode(content)
		if block == nil {
			return nil, fmt.Errorf("%d bytes that are not PEM", len(content))
		}
		one, err := parse(block.Bytes)
		if err != nil {
			return nil, err
		}
		all, content = append(all, one), rest
	}
	return all, nil
}

func parseKey(der []byte) (*ecdsa.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T, want ECDSA", key)
	}
	return own, nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// isDue reports whether the certificate in a Secret must be replaced. This is the case if it is missing or invalid, if
// half of its life is over, if its SPIFFE ID differs from id, or if no current authority signed it.
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

// issueCertificate writes a new certificate for a SPIFFE ID into the data of a Secret, and returns the
// certificate's expiry. The certificate never outlives the authority that signs it.
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
