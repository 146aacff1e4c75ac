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
	// recordHandshake is the first byte that a client sends if, and only if, it uses TLS.
	recordHandshake = 0x16
	// maxSecureAge is the maximum age of connections if the endpoint uses TLS and does not set MaxConnectionAge. The
	// age is limited because certificates expire.
	maxSecureAge = time.Hour
)

// startTLS detects whether the client uses TLS, by the first byte of the connection, and then performs the
// handshake. Only the first call has an effect. It is called by the first Read or Write instead of Accept, so that
// a slow client does not delay other clients.
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

// decrypt performs the TLS handshake, and makes the client reconnect before its certificate expires.
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
