// Package rpcclient is how services call each other: gRPC over HTTP/2, traced, with
// TLS where the address says https, and one connection for all calls to an address.
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
	// dialTimeout bounds making a connection: addresses of pods that are gone swallow
	// what is sent to them, and so do those of Services that a node has just heard of.
	dialTimeout = time.Second
	// pingAfter is how long a connection may be silent before it is asked whether it
	// still is one, and pingTimeout how long the answer may take. Without them a host
	// that vanished is noticed by TCP, after many minutes.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// idleTimeout is how long a connection stays that nobody uses.
	idleTimeout = 5 * time.Minute
)

// Client makes the clients of one service.
type Client struct {
	// HTTP sends requests. It has no timeout of its own: callers have deadlines.
	HTTP *http.Client
	// Options are for each client that is made.
	Options   []connect.ClientOption
	transport *http.Transport
}

// New returns a client for the service at address, which is http://host:port or
// https://host:port. It may be called by that name, or by the addresses of its
// replicas. Its owner closes it.
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
		DialContext:     unmistakable((&net.Dialer{Timeout: dialTimeout}).DialContext),
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

// unmistakable has dial's own timeout, which comes as one of several errors, be an error
// like any other. As it is, callers would be told that their deadline has passed.
func unmistakable(dial dial) dial {
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
