// SPDX-License-Identifier: Apache-2.0

// Package pki creates certificates and keys of test clusters and of programs under test.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"time"
)

// lifetime is the validity period of certificates. No test cluster and no program under test exists for longer.
const lifetime = 365 * 24 * time.Hour

// Pair is a certificate and its private key, both as PEM.
type Pair struct {
	Cert, Key []byte
}

// Authority is a certificate authority.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a new certificate authority.
func NewAuthority(name string) (*Authority, error) {
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of authority %s: %w", name, err)
	}
	pair, err := signCertificate(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &Authority{Pair: pair, cert: template, key: key}, nil
}

// Server issues a server certificate for the given host names and IP addresses.
func (a *Authority) Server(name string, hosts ...string) (Pair, error) {
	template := newTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

// Client issues a client certificate. Kubernetes reads the user and the groups from the certificate's subject.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// Program issues a certificate with a SPIFFE ID, for a program that is a server and a client.
func (a *Authority) Program(id *url.URL) (Pair, error) {
	template := newTemplate(pkix.Name{CommonName: id.String()})
	template.URIs = []*url.URL{id}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", template.Subject.CommonName, err)
	}
	pair, err := signCertificate(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("make the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair, nil
}

// NewKeys creates keys for signing service account tokens. The field Cert contains the public key, not a certificate.
func NewKeys() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encode a public key: %w", err)
	}
	private, err := encodeKey(key)
	return Pair{Cert: encodePEM("PUBLIC KEY", public), Key: private}, err
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(lifetime),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func signCertificate(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	return Pair{Cert: encodePEM("CERTIFICATE", der), Key: private}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
