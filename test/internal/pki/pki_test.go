// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/internal/pki"
)

func TestServerCertificate(t *testing.T) {
	authority, err := pki.NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := pki.NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("server", "172.30.0.1", "kubernetes.default")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason    string
		authority *pki.Authority
		host      string
		valid     bool
	}{
		{"an address it was made for", authority, "172.30.0.1", true},
		{"a name it was made for", authority, "kubernetes.default", true},
		{"another address", authority, "172.30.0.2", false},
		{"an authority of the same name", stranger, "172.30.0.1", false},
	} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(test.authority.Cert)
		_, err := parse(t, pair).Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host})
		if (err == nil) != test.valid {
			t.Errorf("%s: verifying gives %v", test.reason, err)
		}
	}
}

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	authority, err := pki.NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client("system:node:node", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	subject := parse(t, pair).Subject
	if subject.CommonName != "system:node:node" || len(subject.Organization) != 1 ||
		subject.Organization[0] != "system:nodes" {
		t.Errorf("the certificate is for %s", subject)
	}
}

func TestProgramCertificateIdentifiesServersAndClients(t *testing.T) {
	authority, err := pki.NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	id := &url.URL{Scheme: "spiffe", Host: "function-runner", Path: "/gateway"}
	pair, err := authority.Program(id)
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair)
	if uris := certificate.URIs; len(uris) != 1 || *uris[0] != *id {
		t.Errorf("the certificate is for %s, want %s", uris, id)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Cert)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			t.Errorf("key usage %v: %v", usage, err)
		}
	}
}

func TestKeysAreAPair(t *testing.T) {
	pair, err := pki.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.ParsePKCS8PrivateKey(decode(t, pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(decode(t, pair.Cert))
	if err != nil {
		t.Fatal(err)
	}
	if !private.(*ecdsa.PrivateKey).PublicKey.Equal(public) {
		t.Error("the public key is not that of the private one")
	}
}

func TestWriteKeepsTheKeyPrivate(t *testing.T) {
	dir := t.TempDir()
	pair, err := pki.NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file has mode %v", info.Mode())
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")); err != nil {
		t.Error(err)
	}
}

func parse(t *testing.T, pair pki.Pair) *x509.Certificate {
	t.Helper()
	certificate, err := x509.ParseCertificate(decode(t, pair.Cert))
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func decode(t *testing.T, content []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("not PEM: %q", content)
	}
	return block.Bytes
}
