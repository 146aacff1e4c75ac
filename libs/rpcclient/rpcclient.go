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
	"net/netip"
	"net/url"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"

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
	// maxConnections bounds the connections to one address, which many calls share. Without a bound,
	// each early call would open a connection of its own: more than a server accepts from one
	// address.
	maxConnections = 16
	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 5 * time.Minute
)

// Option changes a client.
type Option func(*Client)

// Client makes the clients of one service.
type Client struct {
	// HTTP sends requests. It has no timeout of its own: callers have deadlines.
	HTTP *http.Client
	// Options are for each client made with HTTP.
	Options   []connect.ClientOption
	transport *http.Transport
	balancer  *balancer
	// dial and lookup may be set by [OverNetwork].
	dial   dial
	lookup lookup
}

// New returns a client for the service at address, which is http://host:port or https://host:port.
// It may be called by that name, or by the addresses of its replicas. Its owner closes it.
//
// Secure is how https connects; nil is with the authorities of the system, and a certificate of the
// server that has its name.
func New(address string, secure *tls.Config, tel *telemetry.Telemetry, options ...Option) (*Client, error) {
	return newClient(address, secure, tel, (&net.Dialer{Timeout: dialTimeout}).DialContext, lookupHost, options...)
}

func newClient(
	address string, secure *tls.Config, tel *telemetry.Telemetry, dial dial, lookup lookup, options ...Option,
) (*Client, error) {
	c := &Client{dial: dial, lookup: lookup}
	for _, option := range options {
		option(c)
	}
	tracing, err := tel.Interceptor()
	if err != nil {
		return nil, fmt.Errorf("set up tracing of calls to other services: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read a service's address: %w", err)
	}
	silences, err := newSilences(tel.Meters)
	if err != nil {
		return nil, err
	}
	if secure == nil {
		// Replicas are called by address, and have the service's certificate.
		secure = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	c.Options = []connect.ClientOption{connect.WithGRPC(), connect.WithInterceptors(tracing)}
	connections := func() *http.Transport { return newTransport(secure.Clone(), c.dial) }
	c.transport = connections()
	c.balancer = &balancer{
		url: u, lookup: c.lookup, dial: connections, silences: silences, log: tel.Log, closed: make(chan struct{}),
	}
	c.HTTP = &http.Client{Transport: router{c.transport}}
	c.balancer.health = connect.NewClient[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse](
		c.HTTP, address+grpc_health_v1.Health_Check_FullMethodName, connect.WithGRPC())
	return c, nil
}

// Balanced returns an option for clients of services whose calls change nothing. Such calls go to the
// replicas in turns, at each address that the service's name has. A call that did not reach one, or
// whose replica does not answer at all, is retried at the next one and for up to 15 seconds. A silent
// replica is called after all others until it has answered.
func (c *Client) Balanced() connect.ClientOption { return connect.WithInterceptors(c.balancer) }

// newTransport returns a transport for the replicas of a service.
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

// plainErrors wraps the dialer's own timeout, which comes as one of several errors, into a plain
// error. Unwrapped, it would tell callers that their own deadline has passed. Its connections have plain errors too.
func plainErrors(dial dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
			return nil, errors.New(err.Error())
		}
		if err != nil {
			return nil, plain(err)
		}
		return plainConn{conn}, nil
	}
}

// Close ends probes, and closes connections that are not in use. It is called once. A nil Client has none.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.balancer.close()
	c.transport.CloseIdleConnections()
}

type lookup func(ctx context.Context, host string) ([]string, error)

// OverNetwork replaces the network and DNS, for tests. A nil dial is that of the machine.
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

// lookupHost returns the addresses of a host. Where replicas have addresses of both kinds, one kind is
// enough: each replica would count twice otherwise.
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
