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
	// attempts is the maximum number of attempts for a request.
	attempts = 4
	// firstWait is the first wait between attempts. It doubles after each attempt.
	firstWait = 200 * time.Millisecond
	// maxLost bounds the total time of a session's failed attempts and waits. If a wait would exceed it, callers get
	// the error. The session serves several callers, and does not know their deadlines.
	maxLost = 2500 * time.Millisecond
	// maxRetryAfter is the maximum Retry-After that we obey.
	maxRetryAfter = 24 * time.Hour
)

// transient are the statuses that permit a retry of the request.
var transient = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// retrier retries the requests of a session, with growing waits or with the registry's Retry-After.
type retrier struct {
	next     http.RoundTripper
	attempts int
	// failed is called after each attempt except the last attempt. It may read the body of resp.
	failed func(req *http.Request, resp *http.Response, err error)
	// lost is the total time of failed attempts and waits so far.
	lost time.Duration
}

// RoundTrip sends req until the answer is final, the attempts or the time for them are used up, or the request's
// deadline would pass before the next attempt.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	backoff := retry.Backoff{First: firstWait, Jitter: 0.5}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		resp, err := r.next.RoundTrip(req)
		if attempt == r.attempts || !worthRetrying(resp, err) {
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
			_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // the connection can then be reused
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

// worthRetrying reports whether the same request may succeed a little later.
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

// retryAfter returns the wait of a Retry-After header, in seconds or until a date by the sender's own clock. It returns
// zero without such a header.
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

// streamError has the same fields as package http's unexported error of a reset HTTP/2 stream. Package http lets
// errors.As copy its error to any struct with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream reset" }

// http2Ends are substrings of errors from closing HTTP/2 connections. Package http provides no other way to distinguish
// them.
var http2Ends = []string{"GOAWAY", "http2: client connection", "http2: client conn "}

// isReset reports whether the server closed the HTTP/2 stream or connection, as restarted and overloaded servers do.
// The request itself may be valid.
func isReset(err error) bool {
	_, reset := errors.AsType[streamError](err)
	return reset || slices.ContainsFunc(http2Ends, func(text string) bool { return strings.Contains(err.Error(), text) })
}
