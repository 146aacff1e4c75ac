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

// material is what the files of a directory hold. It does not change.
type material struct {
	certificate tls.Certificate
	id          ID
	authorities *x509.CertPool
	// bundle is the authorities as PEM.
	bundle   string
	expiries []expiry
	// content identifies the files.
	content string
}

// expiry is when something of a material expires.
type expiry struct {
	// what is "certificate" or "issuer".
	what string
	at   time.Time
	// warn is when its expiry is reported: an hour before, or a quarter of its life if that is
	// less.
	warn time.Time
}

func newExpiry(what string, begin, end time.Time) expiry {
	return expiry{what: what, at: end, warn: end.Add(-min(expiryWarning, end.Sub(begin)/4))}
}

// expiryWarning is how long before it an expiry is reported.
const expiryWarning = time.Hour

// read returns the material of a directory. The certificate has to be valid now, with an issuer among
// the authorities: with another one, each peer would reject it.
func read(directory string, now time.Time) (*material, error) {
	if now, err := filepath.EvalSymlinks(filepath.Join(directory, "..data")); err == nil {
		directory = now // Kubernetes replaces the files of a volume together, by switching this link
	}
	content := make(map[string][]byte, 3)
	for _, name := range []string{CertificateFile, KeyFile, AuthoritiesFile} {
		c, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		content[name] = c
	}
	return parse(content, now)
}

// parse returns the material in the content of the files.
func parse(content map[string][]byte, now time.Time) (*material, error) {
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

// addAuthorities adds the certificates of a file, each of which may issue certificates.
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

// findExpiries finds when the certificate and its issuer expire. Of several issuers, which a file has
// while they are replaced, the one that lasts longest counts.
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

// intermediates returns the pool of a chain's certificates. What is none is left out: a chain that
// needs it is not found.
func intermediates(chain [][]byte) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range chain {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}
