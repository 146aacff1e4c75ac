// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Proof proves the identity of a server, such as a function pod, with a secret that the server shares with its
// callers. The server creates a certificate that contains its SPIFFE ID, and an HMAC of the ID and the public key.
// Only a program with the secret can compute the HMAC. No authority needs to issue or renew the certificate, and the
// private key never leaves the server's memory.
type Proof struct {
	id     ID
	secret string
}

// leastSecret is the minimum length of a secret in bytes. A secret of 26 random letters and digits cannot be guessed.
const leastSecret = 26

// NewProof returns the Proof for a server with the given ID. The server needs it to create its certificate, and callers
// need it to verify the certificate. Only the server and its callers may know the secret.
func NewProof(id, secret string) (Proof, error) {
	parsed, err := ParseID(id)
	if err == nil && len(secret) < leastSecret {
		err = fmt.Errorf("the secret of %s has %d bytes, want %d or more", id, len(secret), leastSecret)
	}
	return Proof{parsed, secret}, err
}

// hashOf returns the HMAC of the server's ID and public key. The HMAC's key is the secret.
func (p Proof) hashOf(publicKey []byte) string {
	hash := hmac.New(sha256.New, []byte(p.secret))
	_, _ = fmt.Fprintf(hash, "function-runner pod certificate\n%s\n", p.id) // writing to a hash never fails
	_, _ = hash.Write(publicKey)
	return hex.EncodeToString(hash.Sum(nil))
}

// verifyServer returns an error unless the server's certificate contains the expected ID and the correct HMAC. Only a
// program with the secret can compute this HMAC.
func (p Proof) verifyServer(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	cert := state.PeerCertificates[0]
	id, err := IDOf(cert)
	switch {
	case err != nil:
		return err
	case id != p.id:
		return fmt.Errorf("the server is %s, not %s", id, p.id)
	case !hmac.Equal([]byte(cert.Subject.SerialNumber), []byte(p.hashOf(cert.RawSubjectPublicKeyInfo))):
		return fmt.Errorf("the server claims to be %s, but does not prove it", id)
	}
	return nil
}

// ClientOfProven returns the TLS configuration for connections to the server with the given ID. The server must prove
// its ID with the secret (see [Proof]). If the Identity is nil or id is empty, connections do not use TLS, and
// ClientOfProven returns nil.
func (i *Identity) ClientOfProven(id, secret string) (*tls.Config, error) {
	if i == nil || id == "" {
		return nil, nil
	}
	server, err := NewProof(id, secret)
	if err != nil {
		return nil, err
	}
	return i.client(server.verifyServer), nil // verifies the HMAC instead of an authority's signature
}

// Make returns the identity of a server that proves its ID with a Proof instead of with an authority's certificate. The
// certificates of clients must be from the given authorities, a PEM text. The identity never changes, so callers need
// not call Run.
func Make(proof Proof, authorities string, log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	made := &material{id: proof.id, authorities: x509.NewCertPool()}
	if err := made.addAuthorities([]byte(authorities)); err != nil {
		return nil, fmt.Errorf("read the authorities of callers: %w", err)
	}
	var err error
	if made.certificate, err = proof.newCertificate(); err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", proof.id, err)
	}
	i := Hold(log, meters)
	i.useMaterial(made)
	return i, nil
}

// newCertificate returns a self-signed certificate with a new key. The certificate is never renewed. It is valid for
// ten years, which is longer than any server runs.
func (p Proof) newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(10, 0, 0),
		Subject: pkix.Name{SerialNumber: p.hashOf(public)}, URIs: []*url.URL{p.id.URL()},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
