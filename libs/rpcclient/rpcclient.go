// SPDX-License-Identifier: Apache-2.0

// Package rpcclient creates clients for the calls between the services of this project. They use gRPC over HTTP/2,
// with tracing, and with TLS for https URLs. All calls to an address share a limited number of connections.
package rpcclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

const (
	// dialTimeout is the timeout for opening a connection. It is short, because the network silently drops packets to
	// deleted pods, and a node drops packets to a new Service until it has received the Service's rules.
	dialTimeout = time.Second
	// pingAfter is the time without traffic after which the client sends an HTTP/2 ping, and pingTimeout is the
	// timeout for the answer. Without pings, the client would notice only after many minutes that a host has
	// disappeared.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// maxConnections limits the connections to an address, which all calls share. Without this limit, each of many
	// calls that begin at the same time would open a connection. Together they would exceed the server's limit for a
	// client address.
	maxConnections = 16
	// idleTimeout is the time after which an unused connection is closed.
	idleTimeout = 5 * time.Minute
)

// Option configures a client.
type Option func(*Client)

// Client contains the connections to a service. Pass HTTP and Options to the constructor of a generated client.
type Client struct {
	// HTTP sends the requests. It has no timeout, because each call has its own deadline.
	HTTP *http.Client
	// Options makes a generated client use gRPC and tracing. Each client needs it in addition to HTTP.
	Options   []connect.ClientOption
	transport *http.Transport
	balancer  *balancer
	// dial opens connections and lookup resolves names. Tests replace them by [OverNetwork].
	dial   dial
	lookup lookup
}

// New returns a client for the service at address, which is http://host:port or https://host:port. Callers must
// close it. It sends requests to address, or to a single replica of the service (see [Client.Balanced] and
// [Replica.Call]). Secure configures TLS for https. If it is nil, the client trusts the operating system's
// authorities, and the server's certificate must contain the host name in address.
func New(address string, secure *tls.Config, tel *telemetry.Telemetry, options ...Option) (*Client, error) {
	c := &Client{dial: (&net.Dialer{Timeout: dialTimeout}).DialContext, lookup: lookupHost}
	for _, option := range options {
		option(c)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read a service's address: %w", err)
	}
	if secure == nil {
		// The certificate must contain the name of the service even if the client connects to the IP address of a
		// replica, because all replicas use the service's certificate.
		secure = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	c.Options = []connect.ClientOption{connect.WithGRPC(), connect.WithInterceptors(tel.Interceptor())}
	connections := func() *http.Transport { return newTransport(secure.Clone(), c.dial) }
	c.transport = connections()
	c.balancer = &balancer{
		url: u, lookup: c.lookup, dial: connections, silences: newSilences(tel.Meters), log: tel.Log,
		closed: make(chan struct{}),
	}
	c.HTTP = &http.Client{Transport: router{c.transport}}
	c.balancer.health = connect.NewClient[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse](
		c.HTTP, address+grpc_health_v1.Health_Check_FullMethodName, connect.WithGRPC())
	return c, nil
}

// Balanced returns an option for generated clients whose calls are safe to repeat. It distributes the calls over
// the replicas of the service (the IP addresses of the service's name). A call is retried at the next
// replica, for up to 15 seconds, if it does not reach its replica, or if the replica answers neither the call nor a
// probe. Calls try a replica that does not answer after all other replicas.
func (c *Client) Balanced() connect.ClientOption { return connect.WithInterceptors(c.balancer) }

// newTransport returns the HTTP/2 transport for the connections to a service or to one of its replicas.
func newTransport(secure *tls.Config, dial dial) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:       protocols,
		DialContext:     plainErrors(dial),
		IdleConnTimeout: idleTimeout,
		MaxConnsPerHost: maxConnections,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		TLSClientConfig: secure,
	}
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// plainErrors wraps dial, so that its timeout errors have no type. Otherwise a caller would interpret a timeout of
// the connection as the end of its own deadline. The opened connections also return errors without a type (see
// plainConn).
func plainErrors(dial dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
			return nil, errors.New(err.Error())
		}
		if err != nil {
			return nil, plainError(err)
		}
		return plainConn{conn}, nil
	}
}

// Close stops probes, and closes unused connections. Callers must call it once. Close of a nil Client does nothing.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.balancer.close()
	c.transport.CloseIdleConnections()
}

type lookup func(ctx context.Context, host string) ([]string, error)

// OverNetwork returns an option for tests: the client uses the given functions instead of the machine's network and
// DNS. If dial is nil, the client uses the machine's network.
func OverNetwork(
	dial func(ctx context.Context, network, address string) (net.Conn, error),
	lookup func(ctx context.Context, host string) ([]string, error),
) Option {
	return func(c *Client) {
		c.lookup = lookup
		if dial != nil {
			c.dial = dial
		}
	}
}

// lookupHost returns the IP addresses of a host. If the host has IPv4 addresses, lookupHost omits IPv6 addresses,
// because a replica with both kinds of addresses would otherwise count twice.
func lookupHost(ctx context.Context, host string) ([]string, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(ips))
	v4 := slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().Is4() })
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() == v4 {
			out = append(out, ip.String())
		}
	}
	return out, nil
}

// plainConn is a connection whose errors have no type. If a server breaks a connection, the error is ECONNRESET or
// EPIPE. Connect would return Canceled for these errors, because on a server they mean that the client left, and
// the caller would not retry.
type plainConn struct{ net.Conn }

// Read implements net.Conn.
func (c plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, plainError(err)
}

// Write implements net.Conn.
func (c plainConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, plainError(err)
}

// plainError returns an error with the same text but without the type, if Connect would misinterpret the type. It
// returns other errors unchanged.
func plainError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
