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

// transport returns how to connect to the pod: with TLS if it has a certificate, and this program too. Whether
// a pod has one is what the pod-manager says, which has proved who it is itself.
func (c *Conn) transport(identity *mtls.Identity) (credentials.TransportCredentials, error) {
	secure, err := identity.ClientOfProven(c.pod.ID, c.pod.Secret)
	if err != nil || secure == nil {
		return insecure.NewCredentials(), err
	}
	return handshakes{credentials.NewTLS(secure), c}, nil
}

// handshakes keep why a pod is not the one that is wanted, or does not accept this program: gRPC tries again
// until the caller's time is over, and does not say.
type handshakes struct {
	credentials.TransportCredentials
	conn *Conn
}

// ClientHandshake implements the interface.
func (h handshakes) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, h.failed(err)
	}
	return reads{conn, h}, info, nil
}

func (h handshakes) failed(err error) error {
	err = fmt.Errorf("set up TLS with %s: %w", h.conn.pod.Address, err)
	h.conn.dialError.Store(&err)
	return err
}

// reads is a connection whose handshake is over for the client: what the server finds wrong with the client's
// certificate comes later, as what is read first.
type reads struct {
	net.Conn
	handshakes handshakes
}

// Read implements the interface.
func (r reads) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if err != nil && !r.handshakes.conn.Connected() {
		_ = r.handshakes.failed(err) // the caller knows it as it is
	}
	return n, err
}

// Clone implements the interface.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.conn}
}
