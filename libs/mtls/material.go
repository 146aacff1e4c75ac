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

// The files of a directory, as cert-manager writes them into Secrets.
const (
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	AuthoritiesFile = "ca.crt"
)

// material is the content of a directory's files. It is immutable.
type material struct {
	certificate tls.Certificate
	id          ID
	authorities *x509.CertPool
	// bundle contains the authorities as PEM.
	bundle   string
	expiries []expiry
	// content identifies the files.
	content string
}

// expiry is the expiry of a certificate in a material.
type expiry struct {
	// what is "certificate" or "issuer".
	what string
	at   time.Time
	// warn is the time at which the expiry is first reported: an hour before the expiry, or a quarter of the certificate's
	// lifetime if that is shorter.
	warn time.Time
}

func newExpiry(what string, begin, end time.Time) expiry {
	return expiry{what: what, at: end, warn: end.Add(-min(expiryWarning, end.Sub(begin)/4))}
}

// expiryWarning is the maximum time between the first report and the expiry.
const expiryWarning = time.Hour

// readDirectory returns the material of a directory. The certificate must be valid now, and its issuer must be among
// the authorities: peers would reject other certificates.
func readDirectory(directory string, now time.Time) (*material, error) {
	if now, err := filepath.EvalSymlinks(filepath.Join(directory, "..data")); err == nil {
		directory = now // Kubernetes replaces the files of a volume together, by this link
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

// parseFiles returns the material of files with the given contents.
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

// addAuthorities adds the certificates of a file. Each of them may issue certificates.
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

// findExpiries finds the expiries of the certificate and its issuer. A file may contain several issuers while they are
// replaced: the issuer with the latest expiry counts.
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

// intermediates returns the pool of a chain's certificates, without invalid certificates: a chain that needs them does
// not verify.
func intermediates(chain [][]byte) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range chain {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}
