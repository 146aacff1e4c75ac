// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// maxQuoted is the maximum length of a registry's error text in our error messages, in bytes.
const maxQuoted = 1000

// statusError is an error with the HTTP status of the registry's answer, for example 404.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// statusOf returns the HTTP status if err is an error answer of a registry or token server, and otherwise 0.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.StatusCode
	}
	answer, _ := errors.AsType[statusError](err)
	return answer.status
}

// explainError converts an error of the operation op to an error for users. The new error names the registry, contains
// advice, and has a class that package fault defines, such as fault.Unavailable. It does not wrap err, because callers
// could read the secrets in the text of a wrapped error.
func (s *Session) explainError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("registry %s: %s: %w", s.guard.host, op, ctx.Err())
	}
	cause := classifyError(err)
	words := excerpt.Middle(s.guard.secrets.hideIn(cause.words), maxQuoted)
	if s.mustNotTell(cause, op) {
		s.guard.client.cfg.Telemetry.Log.WarnContext(ctx, "no registry found at a private address",
			"registry", s.guard.host, "error", words)
		return fault.New(fault.Unavailable, "registry %s: %s: no registry answers at its address, which is private: "+
			"check the image's name; the log of the image-resolver has the cause", s.guard.host, op)
	}
	text := fmt.Sprintf("registry %s: %s: %s", s.guard.host, op, words)
	if advice := s.adviceFor(cause); advice != "" {
		text += ": " + advice
	}
	after := s.guard.retryAfter
	if after > 0 && cause.status == http.StatusTooManyRequests {
		text += fmt.Sprintf(" (it asks to wait for %s)", after.Round(time.Second))
	}
	out := fault.New(cause.class, "%s", text)
	if after > 0 && cause.class != fault.Precondition {
		out = fault.WithRetryAfter(out, after)
	}
	if cause.status != 0 {
		return statusError{out, cause.status}
	}
	return out
}

// mustNotTell reports whether an error must hide its cause. Otherwise, callers could use the causes to find open ports
// in private networks. The result is true if the host is at a private address, is not listed in the settings, and did
// not answer as a registry.
func (s *Session) mustNotTell(c cause, op string) bool {
	_, local := errors.AsType[*localError](c.err) // this error is the same for all ports, so it may be shown
	unconnected := c.status == 0 && (isUnreachable(c.err) || isDistrust(c.err) || speaksPlain(c.err))
	return s.guard.private.Load() && !s.guard.client.isListed(s.guard.host) && !local &&
		(unconnected || (op == "log in" && s.scheme == ""))
}

type cause struct {
	class  fault.Class
	words  string
	status int
	err    error
}

func classifyError(err error) cause {
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return cause{class: fault.Precondition, words: untrusted.Error(), err: err}
	}
	if alert := tlsAlert(err); alert != nil {
		return cause{class: fault.Precondition, words: alert.Error(), err: err}
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return cause{class: classOf(answer.StatusCode), words: quoteError(answer), status: answer.StatusCode, err: err}
	}
	c := cause{class: fault.Precondition, words: err.Error(), err: err}
	if isUnreachable(err) {
		c.class = fault.Unavailable
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		c.words = wrapped.Err.Error()
	}
	return c
}

// classOf returns the class of package fault for an HTTP status. The class determines whether callers retry later.
func classOf(status int) fault.Class {
	switch {
	case status == http.StatusTooManyRequests:
		return fault.Exhausted
	case status >= 500 || status == http.StatusRequestTimeout:
		return fault.Unavailable
	default:
		return fault.Precondition
	}
}

// quoteError returns the error messages in a registry's answer, together with the HTTP status.
func quoteError(e *transport.Error) string {
	var words []string
	for _, d := range e.Errors {
		words = append(words, d.String())
	}
	if len(words) == 0 {
		return e.Error()
	}
	return fmt.Sprintf("%s (HTTP %d)", strings.Join(words, "; "), e.StatusCode)
}

// isDistrust reports whether a TLS connection failed because of a certificate. Either we rejected the server's
// certificate, or the server sent a TLS alert, for example about our client certificate.
func isDistrust(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	return verification || tlsAlert(err) != nil
}

// tlsAlert returns the TLS alert from the server that caused err, or nil if there is none. Package tls exports no
// type for alerts, so we compare the name of the failed operation.
func tlsAlert(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return op
	}
	return nil
}

// speaksPlain reports whether a TLS connection failed because the server does not use TLS.
func speaksPlain(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return record || errors.Is(err, http.ErrSchemeMismatch)
}

// unreachableError is the error of a request that received no complete answer. Callers may retry the request later.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

func isUnreachable(err error) bool {
	_, ok := errors.AsType[unreachableError](err)
	return ok
}

// wrapUnreachable wraps a connection error in an unreachableError, so that callers may retry. It returns TLS errors
// unchanged, because a retry would fail again.
func wrapUnreachable(err error) error {
	if isDistrust(err) || speaksPlain(err) {
		return err
	}
	return unreachableError{err}
}

// pageError is the error for an answer that is a web page for browsers, for example an error page of a proxy.
type pageError struct{ what, text string }

func (e *pageError) Error() string {
	return fmt.Sprintf("the %s is not valid JSON, it is a web page: %q", e.what, e.text)
}

func (s *Session) adviceFor(c cause) string {
	switch c.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		if s.cred.IsZero() {
			return "no credentials are configured for it: " +
				"add some to the docker configuration if the image is private, and check the image's name"
		}
		return "check the credentials for it in " + s.cred.Origin
	case http.StatusNotFound:
		return "check the image's name, tag or digest"
	case http.StatusTooManyRequests:
		return "the registry limits how often it may be asked: try later, use credentials with a higher limit, or a mirror"
	case 0:
		return adviceOnConnection(c.err)
	}
	return ""
}

func adviceOnConnection(err error) string {
	_, plaintext := errors.AsType[*plaintextError](err)
	local, isLocal := errors.AsType[*localError](err)
	_, tooLarge := errors.AsType[*tooLargeError](err)
	_, page := errors.AsType[*pageError](err)
	insecure := config.Variable("InsecureRegistries")
	switch {
	case isLocal && local.own:
		return fmt.Sprintf("if it is a registry, list it in %s (plain HTTP) or %s or %s", insecure,
			config.Variable("RegistryTLSPaths"), config.Variable("InternalRegistries"))
	case isDistrust(err):
		return adviceOnTrust(err)
	case isUnreachable(err): // before plaintext, because plain HTTP would not help
		return "check that it runs, and that DNS, proxies and network policies let this service reach it"
	case plaintext || speaksPlain(err):
		return "it has to speak TLS, or to be listed as insecure in " + insecure
	case page:
		return "check the registry's name, and what proxies on the way want"
	case tooLarge:
		return "use an image with fewer layers, platforms or tags"
	}
	return ""
}

func adviceOnTrust(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "add the authority that signed its certificate to the TLS directory, as ca.crt"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate has to name the host by which it is called"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "renew its certificate, and check the clocks"
	}
	if tlsAlert(err) != nil {
		return "it refused our side of TLS: it may want a client certificate, as tls.crt and tls.key in the TLS directory"
	}
	return "check its certificate"
}
