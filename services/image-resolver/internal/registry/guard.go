// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

const (
	// maxAnswer is the maximum size of an answer, in bytes. Every registry must accept manifests up to this size, and
	// image configurations are smaller.
	maxAnswer = 4 << 20
	// maxSession is the maximum total size of a session's answers, in bytes. A list of tags may need several answers.
	maxSession = 32 << 20
)

// guard is the innermost HTTP transport of a session. It rejects requests to forbidden addresses, bounds the size
// of answers, and records facts about the registry, such as whether it requires credentials.
type guard struct {
	client  *Client
	slot    *slot
	host    string
	secrets secrets

	// challenged is true if the registry has required credentials in this session.
	challenged bool
	// private is true if the session has tried to connect to a private address. Goroutines of the transport set it.
	private atomic.Bool
	// retryAfter is the wait that the last answer requested in its Retry-After header. It is zero without this header.
	retryAfter time.Duration
	// read is the total number of bytes that were read from the answers of this session.
	read int64
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	_, secret, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	g.secrets.add(secret)
	if err := g.checkTarget(req); err != nil {
		return nil, err
	}
	resp, err := g.client.metrics.sendObserved(g.host, g.restrictDial(req), g.client.cfg.Transport.RoundTrip)
	if rejected, ok := errors.AsType[*dialguard.Error](err); ok {
		return nil, g.rejectHost(rejected.Host)
	}
	if err != nil {
		return nil, wrapUnreachable(err)
	}
	p := purposeOf(req)
	if resp.StatusCode == http.StatusUnauthorized && req.URL.Host == g.host {
		g.challenged = true
	}
	g.retryAfter = retryAfter(resp.Header, time.Now())
	if !p.layer || resp.StatusCode != http.StatusOK { // the function that reads a layer limits its size
		counts := p.op != opPing && p.op != opToken
		resp.Body = &boundedBody{ReadCloser: resp.Body, ctx: req.Context(), guard: g, counts: counts}
	}
	if resp.StatusCode >= http.StatusBadRequest {
		g.secrets.abridgeBody(resp)
	}
	return resp, nil
}

// checkTarget rejects requests to local or private addresses and by plain HTTP, unless the settings permit them. It
// also rejects a token server at a private address if the registry is at a public address. A transport makes this check
// instead of http.Client.CheckRedirect, because all requests pass the transport, including pings.
func (g *guard) checkTarget(req *http.Request) error {
	host := req.URL.Hostname()
	private := dialguard.IsPrivate(host)
	switch {
	case dialguard.IsLocal(host) && !g.mayReach(host), private && !g.mayBePrivate():
		return g.rejectHost(host)
	case private && purposeOf(req).op == opToken && !g.isOwnHost(host) && !g.isPrivate(req.Context()):
		return g.rejectHost(host)
	case req.URL.Scheme != schemeHTTPS && !g.client.isInsecure(req.URL.Host):
		return &plaintextError{host: req.URL.Host}
	}
	return nil
}

// mayReach reports whether the session may send requests to host, a local address. It returns true only if host is the
// session's registry, and if the settings list this registry. Redirects thus cannot reach other local addresses.
func (g *guard) mayReach(host string) bool { return g.client.isListed(g.host) && g.isOwnHost(host) }

// mayBePrivate reports whether the registry, its redirects and its token servers may be at private addresses.
func (g *guard) mayBePrivate() bool { return !g.client.cfg.PublicOnly || g.client.isListed(g.host) }

// isOwnHost reports whether host is the session's registry. All loopback addresses count as the same host.
func (g *guard) isOwnHost(host string) bool {
	own := hostname(g.host)
	return strings.EqualFold(own, host) || (dialguard.IsLoopback(own) && dialguard.IsLoopback(host))
}

// isPrivate reports whether all addresses of the session's registry are private or loopback addresses.
func (g *guard) isPrivate(ctx context.Context) bool {
	host := hostname(g.host)
	if addr, err := netip.ParseAddr(host); err == nil || dialguard.IsLoopback(host) {
		return dialguard.IsLoopback(host) || addr.Unmap().IsPrivate()
	}
	found, err := g.client.cfg.Lookup(ctx, "ip", host)
	for _, addr := range found {
		if !addr.Unmap().IsPrivate() && !addr.Unmap().IsLoopback() {
			return false
		}
	}
	return err == nil && len(found) > 0
}

// restrictDial returns a copy of a request that fails if its host name resolves to a forbidden address. It returns req
// unchanged in two cases. In the first case, the host is a local address that checkTarget has permitted. In the second
// case, the settings list both the request's host and the session's registry.
func (g *guard) restrictDial(req *http.Request) *http.Request {
	host := req.URL.Hostname()
	if dialguard.IsLocal(host) || (g.client.isListed(req.URL.Host) && g.client.isListed(g.host)) {
		return req
	}
	return req.WithContext(dialguard.Restrict(req.Context(), dialguard.Restriction{
		Host: host, Private: g.mayBePrivate(), OnPrivate: func() { g.private.Store(true) },
	}))
}

// rejectHost returns the error for a request to a host at a forbidden address.
func (g *guard) rejectHost(host string) error {
	return &localError{host: host, own: host == hostname(g.host)}
}

// localError is the error for a request that was rejected because its host is at a private or local address.
type localError struct {
	host string
	own  bool // true if the host is the registry itself, which the caller chose
}

func (e *localError) Error() string {
	if e.own {
		return e.host + " is a private or local address, or resolves to one, which is rejected"
	}
	const text = "the registry sends requests on to %s, which is a private or local address: that is rejected"
	return fmt.Sprintf(text, e.host)
}

// plaintextError is the error for a request that was rejected because it uses plain HTTP instead of TLS.
type plaintextError struct{ host string }

func (e *plaintextError) Error() string {
	return fmt.Sprintf("plain HTTP to %s is rejected: it is not listed as insecure", e.host)
}

// boundedBody is the body of an answer. Reading fails if the body is larger than maxAnswer, or if all answers of
// the session together are larger than maxSession.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // readers have none
	guard  *guard
	counts bool // true if the answer proves that the registry works
	read   int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.guard.read+int64(len(p)) > smallAnswers {
		if err := b.guard.slot.acquireLarge(b.ctx); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.guard.read += int64(n)
	switch {
	case b.read > maxAnswer:
		return n, &tooLargeError{limit: maxAnswer}
	case b.guard.read > maxSession:
		return n, &tooLargeError{limit: maxSession}
	case err != nil && !errors.Is(err, io.EOF):
		return n, unreachableError{err}
	case err != nil && b.counts:
		b.guard.slot.recordAnswer()
	}
	return n, err
}

// tooLargeError is the error for an answer of more than limit bytes.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MiB, which is the limit", e.limit>>20)
}

// hostname returns a host without its port.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	return host
}
