// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Names of the certificate files in [Config.Directory]. cert-manager uses the same names as keys in Secrets.
const (
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	AuthoritiesFile = "ca.crt"
)

// material contains the certificate, the private key and the trusted authorities from a directory. It is immutable.
type material struct {
	certificate tls.Certificate
	id          ID
	authorities *x509.CertPool
	// bundle contains the authorities as PEM.
	bundle   string
	expiries []expiry
	// content is the concatenated text of all files. It serves to detect changes.
	content string
}

// noMaterial is the material of a program that has not received its first certificate yet.
var noMaterial = new(material)

// expiry is the time when this program's certificate or the certificate of its issuer expires.
type expiry struct {
	// what names the certificate: "certificate" for this program's certificate, or "issuer".
	what string
	at   time.Time
	// warn is the time when we begin to warn about the expiry. It is one hour before the expiry. If the certificate is
	// valid for less than four hours, it is after three quarters of the certificate's lifetime.
	warn time.Time
}

func newExpiry(what string, begin, end time.Time) expiry {
	return expiry{what: what, at: end, warn: end.Add(-min(expiryWarning, end.Sub(begin)/4))}
}

// expiryWarning is the time between the first warning and the expiry of a certificate. It is a quarter of the lifetime
// if the certificate is valid for less than four hours.
const expiryWarning = time.Hour

// readDirectory reads and checks the certificate files in a directory. It rejects a certificate that is currently not
// valid, or that none of the authorities issued, because peers would reject the certificate too.
func readDirectory(directory string, now time.Time) (*material, error) {
	if now, err := filepath.EvalSymlinks(filepath.Join(directory, "..data")); err == nil {
		directory = now // Kubernetes replaces all files of a volume at once by changing this link
	}
	content := make(map[string][]byte, 3)
	for _, name := range []string{CertificateFile, KeyFile, AuthoritiesFile} {
		c, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		content[name] = c
	}
	return parseFiles(content, now)
}

func parseFiles(content map[string][]byte, now time.Time) (*material, error) {
	m := &material{
		content:     string(content[CertificateFile]) + string(content[KeyFile]) + string(content[AuthoritiesFile]),
		authorities: x509.NewCertPool(), bundle: string(content[AuthoritiesFile]),
	}
	var err error
	if m.certificate, err = tls.X509KeyPair(content[CertificateFile], content[KeyFile]); err != nil {
		return nil, fmt.Errorf("%s and %s: %w", CertificateFile, KeyFile, err)
	}
	if m.id, err = IDOf(m.certificate.Leaf); err != nil {
		return nil, fmt.Errorf("%s: %w", CertificateFile, err)
	}
	if err := m.addAuthorities(content[AuthoritiesFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", AuthoritiesFile, err)
	}
	if err := m.findExpiries(now); err != nil {
		return nil, fmt.Errorf("%s: %w", CertificateFile, err)
	}
	return m, nil
}

// addAuthorities adds all certificates in content, the PEM text of ca.crt, to the trusted authorities.
func (m *material) addAuthorities(content []byte) error {
	count := 0
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		m.authorities.AddCert(cert)
		count++
	}
	if count == 0 {
		return errors.New("no certificate in it")
	}
	return nil
}

// findExpiries sets the expiries of the certificate and of its issuer. If several issuers are trusted, as during
// the replacement of an issuer, it uses the issuer that expires last.
func (m *material) findExpiries(now time.Time) error {
	leaf := m.certificate.Leaf
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: m.authorities, Intermediates: intermediates(m.certificate.Certificate[1:]), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return err
	}
	issuer := expiry{}
	for _, chain := range chains {
		first := chain[len(chain)-1]
		for _, c := range chain[1:] {
			if c.NotAfter.Before(first.NotAfter) {
				first = c
			}
		}
		if first.NotAfter.After(issuer.at) {
			issuer = newExpiry("issuer", first.NotBefore, first.NotAfter)
		}
	}
	m.expiries = []expiry{newExpiry("certificate", leaf.NotBefore, leaf.NotAfter), issuer}
	return nil
}

// intermediates returns a pool of the intermediate certificates in a chain. It skips certificates that cannot be
// parsed. If a chain needs such a certificate, its verification fails later.
func intermediates(chain [][]byte) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range chain {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}
