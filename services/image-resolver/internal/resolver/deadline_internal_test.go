// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// answers is a network that answers requests by the end of their path.
type answers map[string]reply

// reply is an answer, and how long it takes. One without a status never comes.
type reply struct {
	status int
	header string // as "Name: value"
	words  string
	takes  time.Duration
}

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	var r reply
	for path, answer := range a {
		if strings.HasSuffix(req.URL.Path, path) {
			r = answer
		}
	}
	if r.status == 0 {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if !retry.Sleep(req.Context(), r.takes) {
		return nil, req.Context().Err()
	}
	header := make(http.Header)
	if name, value, ok := strings.Cut(r.header, ": "); ok {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode: r.status,
		Header:     header,
		Body:       io.NopCloser(strings.NewReader(r.words)),
		Request:    req,
	}, nil
}

// TestCallersHearInTime has callers with deadlines as they are in production, and one with
// a second.
func TestCallersHearInTime(t *testing.T) {
	const limited = `{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit"}]}`
	login := reply{
		status: http.StatusUnauthorized,
		header: `WWW-Authenticate: Bearer realm="https://tokens.example/token"`,
	}
	limit := func(retryAfter string) answers {
		return answers{
			"/v2/": {status: 200},
			"/v1":  {status: http.StatusTooManyRequests, header: "Retry-After: " + retryAfter, words: limited},
		}
	}
	tests := map[string]struct {
		reason   string
		network  answers
		deadline time.Duration
		within   time.Duration
		class    fault.Class
		says     string
	}{
		"again and again": {
			"it is tried again, and not for long", limit("1"), 30 * time.Second, 3 * time.Second, fault.Exhausted,
			"pull rate limit",
		},
		"no number": {"the same", limit(""), 30 * time.Second, 3 * time.Second, fault.Exhausted, "pull rate limit"},
		"an hour":   {"no caller can wait for that", limit("3600"), 30 * time.Second, 0, fault.Exhausted, "pull rate limit"},
		"an hour, as a date": {
			"the same", limit("Sat, 01 Jan 2000 01:00:00 GMT"), 30 * time.Second, 0, fault.Exhausted, "pull rate limit",
		},
		"longer than the caller": {
			"whose time is over before the next try", limit("2"), time.Second, 900 * time.Millisecond, fault.Exhausted,
			"pull rate limit",
		},
		"slowly unavailable": {
			"failures take time too",
			answers{"/v2/": {status: 503, words: "down", takes: 2 * time.Second}},
			30 * time.Second,
			5 * time.Second, fault.Unavailable, "503",
		},
		"silent token server": {
			"it is named",
			answers{"/v2/": login},
			30 * time.Second, 8 * time.Second, fault.Unavailable,
			"the token server tokens.example has not answered within 8s",
		},
		"rate-limited login": {
			"the token server's words",
			answers{"/v2/": login, "/token": {status: 429, words: limited}},
			30 * time.Second,
			3 * time.Second, fault.Exhausted, "pull rate limit",
		},
		"silent registry": {
			"a fetch takes less than callers wait",
			answers{},
			30 * time.Second, 20 * time.Second, fault.Unavailable,
			"no answer in time (after 20s)",
		},
		"silent, short deadline ": {
			"the registry has not answered",
			answers{},
			time.Second, 900 * time.Millisecond, fault.DeadlineExceeded,
			"still being fetched",
		},
		"silent after a failure": {
			"what was said before is told",
			answers{"/v2/": {status: 200}, "/v1": {status: 503, words: "starting", takes: 400 * time.Millisecond}},
			time.Second,
			900 * time.Millisecond, fault.Unavailable, "starting",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newResolver(t, tc.network, forAnswers, nil)
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				begin := time.Now()
				_, err := r.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: "registry.example/fn:v1"})
				if took := time.Since(begin); took > tc.within {
					t.Errorf("took %v, want at most %v: %s", took, tc.within, tc.reason)
				}
				if err == nil || fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v of class %v, want %v with %q: %s", err, fault.Of(err), tc.class, tc.says, tc.reason)
				}
				if after, ok := fault.RetryAfter(err); tc.within == 0 && (!ok || after != time.Hour) {
					t.Errorf("retry after %v, %t, want what the registry says", after, ok)
				}
				<-time.After(fetchTimeout) // a fetch continues without its caller
			})
		})
	}
}
