// Package rpcclient is how services call each other: gRPC over HTTP/2, traced, with
// TLS where the address says https, and one connection for all calls to an address.
package rpcclient

import (
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

const (
	// pingAfter is how long a connection may be silent before it is asked whether it
	// still is one, and pingTimeout how long the answer may take. Without them a host
	// that vanished is noticed by TCP, after many minutes.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// Client makes the clients of services.
type Client struct {
	// HTTP sends requests. It has no timeout of its own: callers have deadlines.
	HTTP *http.Client
	// Options are for each service's client.
	Options   []connect.ClientOption
	transport *http.Transport
}

// New returns a client. Its owner closes it.
func New(tel *telemetry.Telemetry) (*Client, error) {
	tracing, err := tel.Interceptor()
	if err != nil {
		return nil, fmt.Errorf("set up tracing of calls to other services: %w", err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols,
		HTTP2:     &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	return &Client{
		HTTP: &http.Client{Transport: transport}, transport: transport,
		Options: []connect.ClientOption{connect.WithGRPC(), connect.WithInterceptors(tracing)},
	}, nil
}

// Close closes connections that are not in use. A nil Client has none.
func (c *Client) Close() {
	if c != nil {
		c.transport.CloseIdleConnections()
	}
}
