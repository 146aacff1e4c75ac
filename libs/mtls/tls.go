// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Server returns the TLS configuration of a server. Clients may connect without a certificate. If a client sends a
// certificate, one of the authorities must have issued it. Handlers get the certificate with the request, and may
// reject requests without a certificate.
func (i *Identity) Server() *tls.Config {
	if i == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.ownCertificate() },
		ClientAuth:     tls.RequestClientCert,
		// With session tickets, a client could resume a session after its certificate has expired.
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			_, err := i.verifyPeer(state, x509.ExtKeyUsageClientAuth)
			return err
		},
	}
}

// ClientOfSibling returns the TLS configuration for connections to another service of this installation. It accepts
// only servers in this program's trust domain with the given path, such as "pod-manager". It returns nil if the
// Identity is nil.
func (i *Identity) ClientOfSibling(path string) *tls.Config {
	if i == nil {
		return nil
	}
	return i.client(func(state tls.ConnectionState) error { // verifies the SPIFFE ID instead of the host name
		id, err := i.verifyPeer(state, x509.ExtKeyUsageServerAuth)
		if want := i.ID().Sibling(path); err == nil && id != want {
			err = fmt.Errorf("the server is %s, not %s", id, want)
		}
		return err
	})
}

// client returns the TLS configuration of a client with this program's certificate. The function verify checks the
// server's certificate.
func (i *Identity) client(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.ownCertificate() },
		InsecureSkipVerify:   true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection:     verify,
	}
}

// verifyPeer returns the SPIFFE ID of a connection's peer. It returns an error unless one of the current authorities
// issued the peer's certificate.
func (i *Identity) verifyPeer(state tls.ConnectionState, usage x509.ExtKeyUsage) (ID, error) {
	if len(state.PeerCertificates) == 0 {
		return ID{}, errors.New("the peer has no certificate")
	}
	current := i.current.Load()
	if current == noMaterial {
		return ID{}, errPending
	}
	options := x509.VerifyOptions{
		Roots: current.authorities, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage},
	}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := state.PeerCertificates[0].Verify(options); err != nil {
		return ID{}, fmt.Errorf("verify the peer's certificate: %w", err)
	}
	return IDOf(state.PeerCertificates[0])
}

// Peer returns the SPIFFE ID of the client of a connection that [Identity.Server] accepted. It returns the zero ID
// if the client has no certificate, or if the certificate has expired since the handshake.
func Peer(state *tls.ConnectionState) ID {
	if state == nil || len(state.PeerCertificates) == 0 || time.Now().After(state.PeerCertificates[0].NotAfter) {
		return ID{}
	}
	id, _ := IDOf(state.PeerCertificates[0]) // zero ID after an error
	return id
}
