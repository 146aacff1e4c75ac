// SPDX-License-Identifier: Apache-2.0

// Package rpcclient makes the clients for calls between services: gRPC over HTTP/2, traced, with
// TLS if the address begins with https, and one connection for all calls to an address.
package rpcclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

const (
	// dialTimeout bounds making a connection: packets to the addresses of deleted pods are dropped,
	// and so are those to new Services on nodes that do not have their rules yet.
	dialTimeout = time.Second
	// pingAfter is how long a connection may be silent before the client sends a ping, and
	// pingTimeout how long the answer may take. Without pings, TCP would take many minutes to
	// notice that a host has vanished.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 5 * time.Minute
)

// Client makes the clients of one service.
type Client struct {
	// HTTP sends requests. It has no timeout of its own: callers have deadlines.
	HTTP *http.Client
	// Options are for each client made with HTTP.
	Options   []connect.ClientOption
	transport *http.Transport
}

// New returns a client for the service at address, which is http://host:port or https://host:port.
// It may be called by that name, or by the addresses of its replicas. Its owner closes it.
func New(address string, tel *telemetry.Telemetry) (*Client, error) {
	tracing, err := tel.Interceptor()
	if err != nil {
		return nil, fmt.Errorf("set up tracing of calls to other services: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read a service's address: %w", err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:       protocols,
		DialContext:     plainTimeouts((&net.Dialer{Timeout: dialTimeout}).DialContext),
		IdleConnTimeout: idleTimeout,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		// Replicas are called by address, and have the service's certificate.
		TLSClientConfig: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12},
	}
	return &Client{
		HTTP: &http.Client{Transport: transport}, transport: transport,
		Options: []connect.ClientOption{connect.WithGRPC(), connect.WithInterceptors(tracing)},
	}, nil
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// plainTimeouts wraps the dialer's own timeout, which comes as one of several errors, into a plain
// error. Unwrapped, it would tell callers that their own deadline has passed.
func plainTimeouts(dial dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
			return nil, errors.New(err.Error())
		}
		return conn, err
	}
}

// Close closes connections that are not in use. A nil Client has none.
func (c *Client) Close() {
	if c != nil {
		c.transport.CloseIdleConnections()
	}
}
