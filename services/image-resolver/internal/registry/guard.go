package registry

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/inside"
)

const (
	// maxAnswer bounds one answer: registries are to accept manifests of up to
	// 4 MiB, and configurations are smaller.
	maxAnswer = 4 << 20
	// maxSession bounds all answers of a session, such as the pages of a list.
	maxSession = 32 << 20
)

// guard is the innermost transport of a session. It refuses what must not be sent,
// bounds what is read, and notes what errors and answers have to say.
type guard struct {
	client  *Client
	host    string
	secrets secrets
	// disguises are what the library calls some token servers.
	disguises disguises

	// challenged is whether the registry has asked for credentials.
	challenged atomic.Bool
	// distrusted is whether a certificate was refused.
	distrusted atomic.Bool
	// retryAfter is what the last answer asked to wait, in nanoseconds.
	retryAfter atomic.Int64
	// read is how many bytes all answers had so far.
	read atomic.Int64
}

func newGuard(c *Client, repo name.Repository, cred credentials.Credential) *guard {
	g := &guard{client: c, host: repo.RegistryStr()}
	g.secrets.addCredential(cred.Auth)
	return g
}

// RoundTrip sends one request.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	g.secrets.addHeader(req.Header.Get("Authorization"))
	req = g.disguises.lift(req)
	if err := g.permit(req); err != nil {
		return nil, err
	}
	send, token := g.client.cfg.Transport.RoundTrip, operation(origin(req)) == opToken
	if token {
		send = hurry(send)
	}
	resp, err := g.client.metrics.observe(g.host, g.confine(req), send)
	if err != nil {
		return nil, g.failed(err)
	}
	if resp.StatusCode == http.StatusUnauthorized && req.URL.Host == g.host {
		g.challenged.Store(true)
	}
	g.retryAfter.Store(int64(retryAfter(resp.Header, time.Now())))
	resp.Body = &bounded{ReadCloser: resp.Body, guard: g}
	g.disguise(req, resp)
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		g.secrets.abridge(resp)
	case token && resp.StatusCode == http.StatusOK:
		if err := g.secrets.learn(req.URL.Host, resp); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// origin returns the request that led to req by redirects.
func origin(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}

// failed notes what an error of the connection has to say, and returns it as what
// it is.
func (g *guard) failed(err error) error {
	if refused, ok := errors.AsType[*inside.Error](err); ok {
		return refused
	}
	if isDistrust(err) {
		g.distrusted.Store(true)
	}
	return unanswered(err)
}

// permit refuses what a registry must not make this service ask: local addresses
// of this machine, and plain HTTP where that is not listed, or where a certificate
// without trust has just been shown: that must not be a way around the check.
//
// It stands here and not in a client's CheckRedirect because every request comes
// by, also those that the library sends with clients of its own: to find out how a
// registry wants to be spoken to, and to token servers.
func (g *guard) permit(req *http.Request) error {
	if to := req.URL.Hostname(); inside.Is(to) && !g.owns(to) {
		return &inside.Error{Host: to}
	}
	if req.URL.Scheme == "https" {
		return nil
	}
	if !g.client.insecure(req.URL.Host) {
		return &plaintextError{host: req.URL.Host}
	}
	if g.distrusted.Load() {
		return &plaintextError{host: req.URL.Host, distrusted: true}
	}
	return nil
}

// owns says whether a host is the registry's own, or like the registry on this
// machine. Anything else is where the registry sends us, by a redirect or to a
// token server.
func (g *guard) owns(host string) bool {
	own := hostname(g.host)
	return strings.EqualFold(own, host) || inside.IsLoopback(own) && inside.IsLoopback(host)
}

// confine returns req so that the name of a foreign host must not turn out to mean
// this machine. A registry on this machine may well use such names.
func (g *guard) confine(req *http.Request) *http.Request {
	to := req.URL.Hostname()
	if g.owns(to) || inside.IsLoopback(hostname(g.host)) {
		return req
	}
	return req.WithContext(inside.Forbid(req.Context(), to))
}

// plaintextError is a request that would have gone out without encryption.
type plaintextError struct {
	host       string
	distrusted bool
}

func (e *plaintextError) Error() string {
	if e.distrusted {
		return fmt.Sprintf("plain HTTP to %s is no way around its certificate", e.host)
	}
	return fmt.Sprintf("plain HTTP to %s is refused: it is not listed as insecure", e.host)
}

// bounded is a body that ends with an error where it gets too large.
type bounded struct {
	io.ReadCloser
	guard *guard
	read  int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	total := b.guard.read.Add(int64(n))
	switch {
	case b.read > maxAnswer:
		return n, &tooLargeError{limit: maxAnswer}
	case total > maxSession:
		return n, &tooLargeError{limit: maxSession}
	case err != nil && !errors.Is(err, io.EOF):
		return n, unreachableError{err}
	}
	return n, err
}

// tooLargeError is an answer of more than limit bytes.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MiB, which is the limit", e.limit>>20)
}

// isLoopback says whether a host, with or without port, is this machine, so that
// plain HTTP may be spoken to it.
func isLoopback(hostport string) bool {
	host := hostname(hostport)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// hostname returns a host without its port, if it has one.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	return host
}
