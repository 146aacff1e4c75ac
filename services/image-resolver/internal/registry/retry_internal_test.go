// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := map[string]struct {
		reason, value, date string
		want                time.Duration
	}{
		"none":           {"nothing is asked for", "", "", 0},
		"seconds":        {"the usual form", "7", "", 7 * time.Second},
		"spaces":         {"some write them", " 7 ", "", 7 * time.Second},
		"negative":       {"no number of seconds", "-7", "", 0},
		"fraction":       {"no number of seconds", "0.5", "", 0},
		"very long":      {"a wait is capped at a day", "100000000", "", 24 * time.Hour},
		"date":           {"the other form", date(time.Minute), "", time.Minute},
		"date in a year": {"a wait is capped at a day", date(365 * 24 * time.Hour), "", 24 * time.Hour},
		"past date":      {"that is over", date(-time.Minute), "", 0},
		"other clock":    {"dates are by the sender's clock", date(time.Hour), date(time.Hour - time.Minute), time.Minute},
		"garbage":        {"nothing is asked for", "soon", "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}
			if got := retryAfter(header, now); got != tc.want {
				t.Errorf("%v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRateLimitedRequestsAreSentAgainInTime has a registry answer at once that it limits requests.
func TestRateLimitedRequestsAreSentAgainInTime(t *testing.T) {
	for after, want := range map[string]int{"": 4, "1": 3, "2": 2, "10": 1} {
		t.Run("after "+after, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				next := roundTripper(func(*http.Request) (*http.Response, error) {
					sent++
					return &http.Response{
						StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {after}},
						Body: io.NopCloser(strings.NewReader("{}")),
					}, nil
				})
				r := retrier{next: next, failed: func(*http.Request, *http.Response, error) {}}
				begin := time.Now()
				resp, err := r.RoundTrip(new(http.Request))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if took := time.Since(begin); sent != want || took > maxLost {
					t.Errorf("%d requests in %v, want %d in %v at most", sent, took, want, maxLost)
				}
			})
		})
	}
}

func TestWorthRetrying(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"goodbye": {
			"the server is restarted",
			errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`), true,
		},
		"graceful end": {
			"the server is restarted", errors.New("http2: Transport received Server's graceful shutdown GOAWAY"), true,
		},
		"lost connection": {"it did not answer a ping", errors.New("http2: client connection lost"), true},
		"reset":           {"a proxy is restarted", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"end":             {"a connection was closed while idle", io.EOF, true},
		"no such host":    {"it will not be there soon", &net.DNSError{Err: "no such host", IsNotFound: true}, false},
		"DNS is slow":     {"it may answer", &net.DNSError{Err: "timeout", IsTemporary: true}, true},
		"other":           {"it is what it is", errors.New("http2: unsupported scheme"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := worthRetrying(nil, unreachableError{tc.err}); got != tc.want {
				t.Errorf("%v is worth another try: %t, want %t: %s", tc.err, got, tc.want, tc.reason)
			}
		})
	}
}
