// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Option changes a client.
type Option func(*Client)

// OrPlaintext has https fall back to plaintext for servers that do not know TLS, while a system changes from one
// to the other. It proves nothing to such servers, and trusts them. A server that knows TLS, and has a
// certificate that is not accepted, is an error as ever.
func OrPlaintext(permissive bool) Option {
	return func(c *Client) { c.permissive = permissive }
}

// handshakeTimeout bounds a TLS handshake with a fallback. Without one, Go's transport bounds it.
const handshakeTimeout = 10 * time.Second

// fallback connects with TLS, and to servers that do not know it without.
type fallback struct {
	dial   dial
	secure *tls.Config
	log    *slog.Logger
	once   *sync.Once // of the line in the log
}

// permit has a transport use plaintext where servers do not know TLS: a connection that is no [tls.Conn] has no
// protocol negotiated, and HTTP/2 begins on it as without TLS.
func (f fallback) permit(t *http.Transport) *http.Transport {
	t.DialTLSContext = f.connect
	return t
}

// connect returns a connection with TLS, if the server knows it.
func (f fallback) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := f.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Client(conn, f.secure)
	err = secure.HandshakeContext(limited)
	if err == nil {
		return secure, nil
	}
	_ = conn.Close() // the error of the handshake is the one that counts
	if !speaksPlaintext(err) {
		return nil, err
	}
	f.once.Do(func() {
		f.log.WarnContext(ctx, "a server does not know TLS; it is called without, as FNR_TLS_PERMISSIVE permits",
			"address", address)
	})
	return f.dial(ctx, network, address)
}

// counted counts the requests that a permissive client sends without TLS.
type counted struct {
	http.RoundTripper
	requests metric.Int64Counter
	of       metric.MeasurementOption
}

// newCounted returns a transport that counts requests to the named service.
func newCounted(transport http.RoundTripper, service string, meters metric.MeterProvider) (*counted, error) {
	requests, err := meters.Meter("rpcclient").Int64Counter("fn.tls.plaintext_requests", metric.WithDescription(
		"Requests that a program with FNR_TLS_PERMISSIVE sent without TLS, by the service that does not know it."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of calls without TLS: %w", err)
	}
	return &counted{transport, requests, metric.WithAttributes(attribute.String("service", service))}, nil
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if _, secure := got.Conn.(*tls.Conn); !secure {
			c.requests.Add(ctx, 1, c.of)
		}
	}}
	return c.RoundTripper.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
}

// speaksPlaintext reports whether a handshake failed because the server answered with something else than TLS. A
// connection that ends without an answer may be that of a server which is stopping.
func speaksPlaintext(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}
