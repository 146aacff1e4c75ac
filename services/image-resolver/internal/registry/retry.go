// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// attempts is the maximum number of times that a request is sent.
	attempts = 4
	// firstWait is the wait after the first failed attempt. The wait doubles after each further attempt.
	firstWait = 200 * time.Millisecond
	// maxLost is the maximum total time of a session's failed attempts and of the waits after them. It is short, so that
	// callers receive the session's error before their deadlines. The session does not know these deadlines.
	maxLost = 2500 * time.Millisecond
	// maxRetryAfter is the maximum wait that we accept from a Retry-After header. Longer waits are shortened.
	maxRetryAfter = 24 * time.Hour
)

// transient contains the HTTP statuses that cause a retry of the request.
var transient = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// retrier is an HTTP transport that retries the requests of a session with growing waits. It respects the
// registry's Retry-After header.
type retrier struct {
	next http.RoundTripper
	// failed is called before each retry, with the result of the failed attempt. It may read the body of resp.
	failed func(req *http.Request, resp *http.Response, err error)
	// lost is the total time that the session has spent on failed attempts and on the waits after them.
	lost time.Duration
}

// RoundTrip sends req and repeats it after temporary failures. It stops if no attempts are left, if the time maxLost is
// used up, or if the request's deadline would pass before the next attempt. It then returns the last answer or error.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	backoff := retry.Backoff{First: firstWait, Jitter: 0.5}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		resp, err := r.next.RoundTrip(req)
		if attempt == attempts || !worthRetrying(resp, err) {
			return resp, err
		}
		wait := backoff.Next()
		if resp != nil {
			wait = max(wait, retryAfter(resp.Header, time.Now()))
		}
		lost := r.lost + time.Since(began) + wait
		if lost > maxLost || !retry.Fits(ctx, wait) || (req.Body != nil && req.GetBody == nil) {
			return resp, err
		}
		r.lost = lost
		r.failed(req, resp, err)
		if resp != nil {
			_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // lets the client reuse the connection
			_ = resp.Body.Close()
		}
		if !retry.Sleep(ctx, wait) {
			return nil, ctx.Err()
		}
		if req.Body != nil {
			req = req.Clone(ctx)
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// worthRetrying reports whether an attempt failed for a temporary reason, so that a retry may succeed.
func worthRetrying(resp *http.Response, err error) bool {
	if err == nil {
		return slices.Contains(transient, resp.StatusCode)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary && !dns.IsNotFound
	}
	for _, temporary := range []error{
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE, net.ErrClosed,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return isReset(err)
}

// retryAfter returns the wait that a Retry-After header requests, in seconds or as a date. Dates follow the sender's
// clock, so the wait begins at the time in the header Date. Without a Retry-After header, the result is zero.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(header.Get("Date")); err == nil {
		now = theirs
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}

// streamError is a copy of the error type of package http for a reset HTTP/2 stream. That type is unexported, but
// package http lets errors.As copy such an error to any struct with the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream reset" }

// http2Ends are texts in package http's errors about HTTP/2 connections that the server has closed. We search for these
// texts, because package http provides no other way to recognize the errors.
var http2Ends = []string{"GOAWAY", "http2: client connection", "http2: client conn "}

// isReset reports whether the server closed the HTTP/2 stream or connection, as restarting and overloaded servers
// do. The request may succeed when it is sent again.
func isReset(err error) bool {
	_, reset := errors.AsType[streamError](err)
	return reset || slices.ContainsFunc(http2Ends, func(text string) bool { return strings.Contains(err.Error(), text) })
}
