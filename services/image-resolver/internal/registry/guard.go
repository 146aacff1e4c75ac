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
	if err := g.permit(req); err != nil {
		return nil, err
	}
	resp, err := g.client.metrics.observe(g.host, req, g.client.cfg.Transport.RoundTrip)
	if err != nil {
		if isDistrust(err) {
			g.distrusted.Store(true)
		}
		return nil, unanswered(err)
	}
	if resp.StatusCode == http.StatusUnauthorized && req.URL.Host == g.host {
		g.challenged.Store(true)
	}
	g.retryAfter.Store(int64(retryAfter(resp.Header, time.Now())))
	resp.Body = &bounded{ReadCloser: resp.Body, guard: g}
	if operation(req) == opToken && resp.StatusCode == http.StatusOK {
		resp.Body = g.secrets.learn(resp.Body)
	}
	return resp, nil
}

// permit refuses plain HTTP to a registry that is not listed for it, and to one
// that has just shown a certificate without trust: that must not be a way around
// the check.
func (g *guard) permit(req *http.Request) error {
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

// maxRedirects is how often a registry may send us elsewhere.
const maxRedirects = 10

// checkRedirect refuses a redirect from a registry to an address that only this
// machine or its cloud can reach, such as a metadata service.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("redirected %d times", len(via))
	}
	from, to := via[0].URL.Hostname(), req.URL.Hostname()
	if ip := net.ParseIP(to); from != to && ip != nil && (ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()) {
		return fmt.Errorf("redirect to the local address %s is refused", to)
	}
	return nil
}

// isLoopback says whether a host, with or without port, is this machine.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
