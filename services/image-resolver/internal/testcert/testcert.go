// SPDX-License-Identifier: Apache-2.0

// Package testcert issues certificates for registries and their clients in tests.
package testcert

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

// Name is a host name for which all certificates of this package are valid, in addition to localhost.
const Name = "registry.example"

// Authority is a certificate authority for tests.
type Authority struct{ *mtlstest.Authority }

// NewAuthority returns a new certificate authority that is valid for an hour.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	return &Authority{mtlstest.NewAuthority(t, time.Hour)}
}

// Issue returns a certificate and its key in PEM format. The certificate is for servers and clients at 127.0.0.1,
// localhost and [Name]. It expires at the time end.
func (a *Authority) Issue(t testing.TB, end time.Time) (cert, key []byte) {
	t.Helper()
	return a.IssueHost(t, time.Until(end), "localhost", Name)
}

// Server returns the TLS settings of a server. The server's certificate expires at the time end.
func (a *Authority) Server(t testing.TB, end time.Time) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(t, end))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// Pool returns a certificate pool that contains only this authority, for clients that must trust its certificates.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM)
	return pool
}

// Write writes a file to a directory.
func Write(t testing.TB, directory, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
