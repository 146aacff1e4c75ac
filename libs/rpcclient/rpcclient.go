// SPDX-License-Identifier: Apache-2.0

// Package rpcclient creates gRPC clients for calls between the services of this project, with tracing and, for
// https URLs, with TLS. All calls to an address share a limited number of connections.
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
	// dialTimeout is the timeout for opening a connection. It is short, because nodes silently drop packets to a deleted
	// pod, or to a Service that is new to the node.
	dialTimeout = time.Second
	// pingAfter is the time without received data after which the client sends an HTTP/2 ping. Without pings, the client
	// would notice only after many minutes that a host is lost.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// maxConnections limits the connections to an address, which all calls share. Without this limit, many concurrent
	// calls would each open a connection, and exceed the server's limit for a client address.
	maxConnections = 16
	// idleTimeout is the time after which an unused connection is closed.
	idleTimeout = 5 * time.Minute
)

// Option configures a client.
type Option func(*Client)

// Client contains the connections to a service. Pass its HTTP and Options to the constructor of a generated client.
type Client struct {
	// HTTP sends the requests. It has no timeout, because each call has its own deadline.
	HTTP *http.Client
	// Options contains the options for gRPC and tracing that each generated client needs.
	Options   []connect.ClientOption
	transport *http.Transport
	balancer  *balancer
	// dial opens connections, and lookup resolves host names. Tests replace both with [OverNetwork].
	dial   dial
	lookup lookup
}

// New returns a client for the service with the URL address, such as https://host:port. Callers must close the client.
// The client sends all requests to this URL, unless [Client.Balanced] or [Replica.Call] selects a replica. The argument
// secure configures TLS for https. If secure is nil, the client trusts the operating system's authorities, and the
// server's certificate must contain the host name in the URL.
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
		// All replicas use the certificate of the service. The client therefore expects the service's name, even when it
		// connects to the IP address of a replica.
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

// Balanced returns an option that distributes the calls of a generated client over the IP addresses of the service. If
// a replica cannot be reached or stops answering, the client repeats the call at the next replica, for up to 15
// seconds. Calls must therefore be safe to repeat. Later calls try the silent replica last, until it answers again.
func (c *Client) Balanced() connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(c.balancer.distributeCalls))
}

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

// plainErrors wraps a dial function, and removes the type of its timeout errors. With this type, callers would mistake
// a timeout of the connection for their own deadline. plainErrors also wraps opened connections in plainConn.
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

// Close stops health checks and closes unused connections. Callers must call it once. A nil Client does nothing.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.balancer.close()
	c.transport.CloseIdleConnections()
}

type lookup func(ctx context.Context, host string) ([]string, error)

// OverNetwork returns an option for tests that replaces the machine's network and DNS with the given functions. If
// dial is nil, the client uses the machine's network.
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

// lookupHost returns the IP addresses of a host. If the host has IPv4 addresses, it omits the IPv6 addresses, so that
// a replica with both does not count twice.
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

// plainConn is a connection that removes the type of ECONNRESET and EPIPE errors. These errors mean that the server
// broke the connection. With their type, Connect would convert them to Canceled, as if a client had disconnected.
// Callers would then not retry.
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

// plainError removes the type of ECONNRESET and EPIPE errors, because Connect would convert this type to Canceled. It
// returns any other error unchanged.
func plainError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
