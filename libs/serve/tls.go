// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"io"
	"time"
)

const (
	// handshakeTimeout limits the time of a TLS handshake.
	handshakeTimeout = 10 * time.Second
	// recordHandshake is the first byte of a TLS connection. No request without TLS begins with this byte.
	recordHandshake = 0x16
	// maxSecureAge is the maximum age of connections with TLS if the endpoint sets none. They need a maximum, because
	// certificates expire.
	maxSecureAge = time.Hour
)

// startTLS reads the first byte of a connection, which shows if the client uses TLS. If so, it performs the
// handshake. Only the first call does so. It runs in the goroutine that serves the connection.
func (c *conn) startTLS() error {
	if c.listener.tls == nil {
		return nil
	}
	c.handshake.Do(func() {
		first := make([]byte, 1)
		if _, c.handshakeErr = io.ReadFull(c.transport, first); c.handshakeErr != nil {
			return
		}
		c.transport.begin = first
		if first[0] != recordHandshake {
			return
		}
		if c.handshakeErr = c.decrypt(); c.handshakeErr != nil {
			c.listener.failed(c.peer, c.handshakeErr)
		}
	})
	return c.handshakeErr
}

// decrypt performs the handshake. It also sets the time at which the client must use another connection, before its
// certificate expires.
func (c *conn) decrypt() error {
	secure := tls.Server(c.Conn, c.listener.tls)
	c.Conn = secure
	c.secure.Store(secure)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.state = new(secure.ConnectionState())
	if certs := c.state.PeerCertificates; len(certs) > 0 {
		c.expireAt(time.Now().Add(time.Until(certs[0].NotAfter)*3/4), c.state.NegotiatedProtocol == "h2")
	}
	return nil
}
