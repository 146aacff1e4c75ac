// SPDX-License-Identifier: Apache-2.0

// Package rpcclient creates the clients for calls between services: gRPC over HTTP/2 with tracing, with TLS for https
// URLs, and with shared connections to each address.
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
	// dialTimeout limits the time to connect. The network drops packets to the addresses of deleted pods. A node also
	// drops packets to a new Service until it has the Service's rules.
	dialTimeout = time.Second
	// pingAfter is the time without traffic after which the client sends a ping, and pingTimeout limits the time of its
	// answer. Without pings, TCP would detect a vanished host only after many minutes.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// maxConnections limits the connections to an address, which many calls share. Without a limit, each of many
	// calls at the start would open its own connection, and they would exceed the server's limit for a client
	// address.
	maxConnections = 16
	// idleTimeout is the time after which an unused connection is closed.
	idleTimeout = 5 * time.Minute
)

// Option configures a client.
type Option func(*Client)

// Client contains the connections to a service. Its HTTP and Options fields are for generated clients.
type Client struct {
	// HTTP sends requests. It has no timeout, because callers use deadlines.
	HTTP *http.Client
	// Options contains the options for all generated clients that use HTTP.
	Options   []connect.ClientOption
	transport *http.Transport
	balancer  *balancer
	// dial and lookup are replaced by [OverNetwork].
	dial   dial
	lookup lookup
}

// New returns a client for the service at address, which is http://host:port or https://host:port. Requests go to
// address, or to a replica's own address (see [Client.Balanced] and [Client.Call]). Callers must close the client.
//
// Secure configures TLS for https. If it is nil, the client trusts the authorities of the system, and the server's
// certificate must contain the host name in address.
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
		// Calls to a replica's IP address verify the name of the service, because replicas use the service's
		// certificate.
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

// Balanced returns an option for clients of services whose calls are safe to retry. It distributes calls over the
// replicas, which are the addresses of the service's name. If a call does not reach its replica, or the replica
// answers neither the call nor a probe, the call is retried at the next replica, for up to 15 seconds. Calls try a
// silent replica after all other replicas until it answers a probe.
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

// plainErrors converts timeout errors of dial to errors without a type, because callers would interpret them as their
// own deadline. The connections that it returns convert errors too (see plainConn).
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

// OverNetwork makes a client use the given network and DNS instead of the machine's, for tests. A nil dial means the
// machine's network.
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

// lookupHost returns the IP addresses of a host. It returns only IPv4 addresses if there are any, because otherwise a
// replica with addresses of both families would count twice.
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
