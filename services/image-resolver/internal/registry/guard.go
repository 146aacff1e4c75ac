// SPDX-License-Identifier: Apache-2.0

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
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

const (
	// maxAnswer bounds one answer: registries are to accept manifests of up to
	// 4 MiB, and configurations are smaller.
	maxAnswer = 4 << 20
	// maxSession bounds all answers of a session, such as the pages of a list.
	maxSession = 32 << 20
)

// guard is the innermost transport of a session. It rejects what must not be sent,
// bounds what is read, and records what errors and answers show.
type guard struct {
	client  *Client
	slot    *slot
	host    string
	secrets secrets
	// disguises are what the library calls some token servers.
	disguises disguises

	// challenged is whether the registry has required credentials.
	challenged atomic.Bool
	// distrusted is whether a certificate was rejected.
	distrusted atomic.Bool
	// retryAfter is what the last answer asked to wait, in nanoseconds.
	retryAfter atomic.Int64
	// late contains the challenges of a registry that required nothing from the ping; nil if there are none.
	late []string
	// scheme is the scheme of the last ping that was answered.
	scheme string
	// pingChallenged is true if the ping required credentials.
	pingChallenged bool
	// read is how many bytes all answers had so far.
	read atomic.Int64
}

func newGuard(c *Client, slot *slot, repo name.Repository, cred credentials.Credential) *guard {
	g := &guard{client: c, slot: slot, host: repo.RegistryStr()}
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
	if g.late != nil && operation(req) == opPing && req.URL.Scheme == g.scheme {
		return g.answerPing(req), nil
	}
	op := operation(origin(req))
	send, token := g.client.cfg.Transport.RoundTrip, op == opToken
	if token {
		send = withTokenTimeout(send)
	}
	resp, err := g.client.metrics.observe(g.host, g.restrict(req), g.tentative(req), send)
	if err != nil {
		return nil, g.failed(err)
	}
	if resp.StatusCode == http.StatusUnauthorized && req.URL.Host == g.host {
		g.challenged.Store(true)
		g.pingChallenged = g.pingChallenged || op == opPing
		separateChallenges(resp.Header)
	}
	if op == opPing {
		g.scheme = req.URL.Scheme
	}
	g.retryAfter.Store(int64(retryAfter(resp.Header, time.Now())))
	if !isLayer(req, resp) { // its reader bounds a layer
		grow := func() error { return g.slot.grow(req.Context()) }
		resp.Body = &bounded{ReadCloser: resp.Body, guard: g, op: op, grow: grow}
	}
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

// tentative reports whether plain HTTP follows if a request fails: a registry that is listed as
// insecure is asked over TLS first.
func (g *guard) tentative(req *http.Request) bool {
	return req.URL.Scheme == "https" && operation(req) == opPing && g.client.insecure(req.URL.Host)
}

// origin returns the request that led to req by redirects.
func origin(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}

// failed records what an error of the connection shows, and returns it classified.
func (g *guard) failed(err error) error {
	if rejected, ok := errors.AsType[*dialguard.Error](err); ok {
		return g.rejected(rejected)
	}
	if isDistrust(err) {
		g.distrusted.Store(true)
	}
	return unanswered(err)
}

// permit rejects requests to local addresses, and plain HTTP, where they are not listed. Plain
// HTTP is also rejected once the registry has shown a certificate without trust: it must not be
// a way around the check.
//
// It stands here and not in a client's CheckRedirect because every request passes here, also
// the first ping and requests to token servers, which the library sends with clients of its own.
func (g *guard) permit(req *http.Request) error {
	host := req.URL.Hostname()
	if dialguard.IsLocal(host) && !g.mayReach(host) || dialguard.IsPrivate(host) && !g.mayBePrivate() {
		return g.rejected(&dialguard.Error{Host: host})
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

// mayReach reports whether requests may be sent to a local address: a listed registry's own, or
// one on this machine to which a listed registry on this machine sends them on. Being listed
// does not make an address reachable by way of other registries.
func (g *guard) mayReach(host string) bool { return g.client.listed(g.host) && g.owns(host) }

// mayBePrivate reports whether requests of the session may reach private networks: the registry, its redirects and its
// token servers.
func (g *guard) mayBePrivate() bool { return !g.client.cfg.PublicOnly || g.client.listed(g.host) }

// owns reports whether a host is the registry's own, or like the registry on this machine.
func (g *guard) owns(host string) bool {
	own := hostname(g.host)
	return strings.EqualFold(own, host) || dialguard.IsLoopback(own) && dialguard.IsLoopback(host)
}

// restrict returns req so that no connection is made to a local address that its host resolves
// to, unless both the host and the registry are listed. An address needs no name to be resolved,
// and [guard.permit] has allowed it.
func (g *guard) restrict(req *http.Request) *http.Request {
	host := req.URL.Hostname()
	if dialguard.IsLocal(host) || g.client.listed(req.URL.Host) && g.client.listed(g.host) {
		return req
	}
	return req.WithContext(dialguard.Restrict(req.Context(), host, g.mayBePrivate()))
}

// rejected returns a rejection with what led to the address.
func (g *guard) rejected(err *dialguard.Error) error {
	return &localError{host: err.Host, own: err.Host == hostname(g.host)}
}

// localError is a request to a local address that was rejected.
type localError struct {
	host string
	own  bool // the registry's own host, which the caller has named
}

func (e *localError) Error() string {
	if e.own {
		return e.host + " is a private or local address, or resolves to one, which is rejected"
	}
	const text = "the registry sends requests on to %s, which is a private or local address: that is rejected"
	return fmt.Sprintf(text, e.host)
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
	return fmt.Sprintf("plain HTTP to %s is rejected: it is not listed as insecure", e.host)
}

// bounded is a body that ends with an error where it gets too large.
type bounded struct {
	io.ReadCloser
	guard *guard
	op    string // what the request was for
	read  int64
	// grow waits until more than smallAnswers may be read.
	grow func() error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.guard.read.Load()+int64(len(p)) > smallAnswers {
		if err := b.grow(); err != nil {
			return 0, err
		}
	}
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
	case err != nil && b.op != opPing && b.op != opToken:
		b.guard.slot.answered()
	}
	return n, err
}

// tooLargeError is an answer of more than limit bytes.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MiB, which is the limit", e.limit>>20)
}

// hostname returns a host without its port, if it has one.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	return host
}
