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

// Names of the files in [Config.Directory]. cert-manager uses the same names in Secrets.
const (
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	AuthoritiesFile = "ca.crt"
)

// material contains the parsed files of a directory. It is immutable.
type material struct {
	certificate tls.Certificate
	id          ID
	authorities *x509.CertPool
	// bundle contains the authorities as PEM.
	bundle   string
	expiries []expiry
	// content contains the text of all files, to detect changes.
	content string
}

// expiry is the expiry of the certificate or of its issuer.
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

// expiryWarning is the maximum time from the first report of an expiry to the expiry.
const expiryWarning = time.Hour

// readDirectory returns the material of a directory. It rejects a certificate that is not valid now or not issued by
// one of the authorities, because peers would reject it too.
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

// addAuthorities adds all certificates in the content of a file to the trusted authorities.
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

// findExpiries sets the expiries of the certificate and its issuer. While an issuer is being replaced, the file
// contains several issuers. Then the latest expiry counts.
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

// intermediates returns a pool with the certificates of a chain. It skips invalid certificates, because a chain that
// needs them fails the verification anyway.
func intermediates(chain [][]byte) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range chain {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}
