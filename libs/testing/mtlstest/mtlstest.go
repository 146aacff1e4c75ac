// SPDX-License-Identifier: Apache-2.0

// Package mtlstest issues certificates in tests, and writes them to directories that look like a mounted Secret.
package mtlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// Authority is a certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the authority's certificate.
	PEM []byte
}

// NewAuthority returns a certificate authority whose own certificate is valid for the duration life.
func NewAuthority(t testing.TB, life time.Duration) *Authority {
	t.Helper()
	template := newTemplate(life)
	template.Subject = pkix.Name{CommonName: "test authority", SerialNumber: template.SerialNumber.String()}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a := new(Authority)
	a.key = newKey(t)
	a.cert = a.signCertificate(t, template, template, a.key)
	a.PEM = encodeBlock("CERTIFICATE", a.cert.Raw)
	return a
}

// Issue returns a certificate with the URI id, such as a SPIFFE ID, and the certificate's private key.
func (a *Authority) Issue(t testing.TB, id string, life time.Duration) (certificate, key []byte) {
	t.Helper()
	uri, err := url.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	template := newTemplate(life)
	template.URIs = []*url.URL{uri}
	return a.issue(t, template)
}

// IssueHost returns a certificate for 127.0.0.1 and the given hosts, and the certificate's private key. Servers and
// clients can use the certificate. If the duration life is negative, the certificate has already expired.
func (a *Authority) IssueHost(t testing.TB, life time.Duration, hosts ...string) (certificate, key []byte) {
	t.Helper()
	template := newTemplate(life)
	template.DNSNames = hosts
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.issue(t, template)
}

func (a *Authority) issue(t testing.TB, template *x509.Certificate) (certificate, key []byte) {
	t.Helper()
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	k := newKey(t)
	cert := a.signCertificate(t, template, a.cert, k)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return encodeBlock("CERTIFICATE", cert.Raw), encodeBlock("PRIVATE KEY", der)
}

// Write writes a new certificate with a SPIFFE ID to the directory dir, in the way that Kubernetes updates a mounted
// Secret. The new file ca.crt contains the certificates of this authority and of the additional authorities.
func (a *Authority) Write(t testing.TB, dir, id string, life time.Duration, others ...*Authority) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := a.Issue(t, id, life)
	link := filepath.Join(dir, "..data")
	former, _ := os.Readlink(link)
	for name, content := range map[string][]byte{
		mtls.CertificateFile: certificate, mtls.KeyFile: key, mtls.AuthoritiesFile: a.certificatesWith(others),
	} {
		err := os.WriteFile(filepath.Join(data, name), content, 0o600)
		if err == nil && former == "" {
			err = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replaceLink(t, link, filepath.Base(data))
	if former != "" {
		_ = os.RemoveAll(filepath.Join(dir, former))
	}
}

func (a *Authority) certificatesWith(others []*Authority) []byte {
	authorities := slices.Clone(a.PEM)
	for _, o := range others {
		authorities = append(authorities, o.PEM...)
	}
	return authorities
}

// replaceLink atomically changes the target of a symbolic link, or creates the link.
func replaceLink(t testing.TB, link, target string) {
	t.Helper()
	if err := os.Symlink(target, link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
}

// Identity returns an identity with a new certificate for a SPIFFE ID. Until the test ends, the identity reloads
// changed files.
func (a *Authority) Identity(t testing.TB, id string) *mtls.Identity {
	t.Helper()
	dir := t.TempDir()
	a.Write(t, dir, id, time.Hour)
	return Open(t, dir)
}

// Open returns the identity with the certificate in dir. Until the test ends, the identity reloads changed files.
func Open(t testing.TB, dir string) *mtls.Identity {
	t.Helper()
	tel := telemetry.Discard()
	identity, err := mtls.Open(mtls.Config{Directory: dir}, tel.Log, tel.Meters)
	if err != nil {
		t.Fatal(err)
	}
	servetest.Go(t, identity.Run)
	return identity
}

// newTemplate returns the template of a certificate that is valid for the duration life.
func newTemplate(life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-time.Second), NotAfter: now.Add(life)}
}

func (a *Authority) signCertificate(
	t testing.TB, template, parent *x509.Certificate, key *ecdsa.PrivateKey,
) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encodeBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
