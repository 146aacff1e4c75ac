// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// issue creates an authority and a certificate of it for a host:port whose host is an address. It
// returns the certificate and the authority's PEM.
func issue(t *testing.T, hostPort string) (tls.Certificate, []byte) {
	t.Helper()
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		t.Fatal(err)
	}
	authority := template("authority " + rand.Text())
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authorityKey, ca := sign(t, authority, authority, nil)
	server := template(host)
	server.IPAddresses = []net.IP{net.ParseIP(host)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, certificate := sign(t, server, authority, authorityKey)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// sign creates a key and a certificate that parent's key signs; without a parent it signs itself.
func sign(t *testing.T, certificate, parent *x509.Certificate,
	parentKey *ecdsa.PrivateKey,
) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}
