// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// podCredentials returns TLS credentials if both the pod and this program have certificates. Otherwise it returns
// credentials for plaintext. The pod's ID and secret are from the pod-manager. We trust them, because this program has
// verified the pod-manager's identity.
func (c *Conn) podCredentials(identity *mtls.Identity) (credentials.TransportCredentials, error) {
	secure, err := identity.ClientOfProven(c.pod.ID, c.pod.Secret)
	if err != nil || secure == nil {
		return insecure.NewCredentials(), err
	}
	return handshakes{credentials.NewTLS(secure), c}, nil
}

// handshakes stores the error of a failed TLS handshake, such as a rejected certificate, so that callers can show the
// reason. gRPC itself retries until the caller's deadline and does not return the error.
type handshakes struct {
	credentials.TransportCredentials
	conn *Conn
}

// ClientHandshake implements credentials.TransportCredentials.
func (h handshakes) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, h.storeError(err)
	}
	return &reads{Conn: conn, handshakes: h}, info, nil
}

func (h handshakes) storeError(err error) error {
	err = fmt.Errorf("set up TLS with %s: %w", h.conn.pod.Address, err)
	h.conn.tlsError.Store(&err)
	return err
}

// reads is a TLS connection that stores the error of its first read as a handshake error. If the server rejects the
// client's certificate, the handshake itself succeeds, and the first read returns the error.
type reads struct {
	net.Conn
	handshakes handshakes
	accepted   bool
}

// Read implements net.Conn.
func (r *reads) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	switch {
	case r.accepted:
	case err != nil:
		_ = r.handshakes.storeError(err) // gRPC returns the error unchanged
	default:
		r.accepted = true
		r.handshakes.conn.tlsError.Store(nil)
	}
	return n, err
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.conn}
}
