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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// attempts is how often a request is tried in all.
	attempts = 4
	// firstWait is the first wait between attempts; each further one is twice as long.
	firstWait = 200 * time.Millisecond
	// maxLost bounds what failed attempts and waits of a session take together. Callers
	// that would wait for longer get the error: they have deadlines that a session, which
	// is for all of them, does not know.
	maxLost = 2500 * time.Millisecond
	// maxRetryAfter bounds what is believed of a Retry-After header.
	maxRetryAfter = 24 * time.Hour
)

// transient are the statuses after which the same request may succeed.
var transient = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// retrier retries the requests of a session, with growing waits, or with the ones that a
// registry asks for.
type retrier struct {
	next     http.RoundTripper
	attempts int
	// failed is called after an attempt that is followed by another. It may read the
	// answer.
	failed func(req *http.Request, resp *http.Response, err error)
	// lost is how long failed attempts and waits took so far, in nanoseconds.
	lost atomic.Int64
}

// RoundTrip sends req until the answer is final, the attempts or the time for them are used up,
// or the request's deadline would pass before the next.
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
		if !retry.Fits(ctx, wait) || !r.spend(time.Since(began)+wait) {
			return resp, err
		}
		if again := rewind(req); again != nil {
			req = again
		} else {
			return resp, err
		}
		r.failed(req, resp, err)
		if resp != nil {
			_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
			_ = resp.Body.Close()
		}
		if !retry.Sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// spend takes an attempt and a wait from the time for them, and reports whether there was as
// much.
func (r *retrier) spend(took time.Duration) bool {
	if r.lost.Add(int64(took)) <= int64(maxLost) {
		return true
	}
	r.lost.Add(-int64(took))
	return false
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
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNREFUSED,
		syscall.EPIPE, net.ErrClosed,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return isReset(err)
}

// retryAfter returns how long a Retry-After header asks to wait, in seconds or until a
// date by the sender's own clock; zero if there is none.
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

// rewind returns req to be sent once more, or nil if its body is used up.
func rewind(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again
}
