// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// tagged is a registry with one repository, whose tags are all the same image.
type tagged struct {
	mu sync.Mutex
	// tags are as in JSON.
	tags string
	// status is what everything is answered with, unless it is 0.
	status int
	lists  int // how often tags were listed
}

func (s *tagged) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const config = `{"os":"linux","architecture":"amd64","config":{"Cmd":["fn"]}}`
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status,
			Header:     make(http.Header),
			Body:       io.NopCloser(strings.NewReader(body)),
			Request:    req,
		}, nil
	}
	listing := strings.HasSuffix(req.URL.Path, "/tags/list")
	if listing {
		s.lists++
	}
	switch {
	case s.status != 0:
		return answer(s.status, "")
	case listing:
		return answer(http.StatusOK, `{"tags":[`+s.tags+`]}`)
	case strings.Contains(req.URL.Path, "/manifests/"):
		return answer(http.StatusOK,
			`{"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"`+oci.Digest([]byte(config))+`"}}`)
	case strings.Contains(req.URL.Path, "/blobs/"):
		return answer(http.StatusOK, config)
	default:
		return answer(http.StatusOK, "")
	}
}

// become changes what the registry has, or says.
func (s *tagged) become(tags string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tags = tags
	s.status = status
}

// life is the lifetime of answers in production.
var life = cache.Lifetime{TTL: 5 * time.Minute, Stale: time.Hour, Failure: 10 * time.Second}

// newest is the request for the highest version 1 of an image.
var newest = &imageresolverv1.ResolveImageRequest{Image: "registry.example/fn", TagConstraint: "^1"}

// TestConstraintFollowsItsRepository has a function in use whose repository gets a new
// version, and then fails.
func TestConstraintFollowsItsRepository(t *testing.T) {
	tests := map[string]struct {
		reason string
		status int
		kept   bool
	}{
		"away":    {"an old answer is better than none", http.StatusServiceUnavailable, true},
		"limited": {"an old answer is better than none", http.StatusTooManyRequests, true},
		"refused": {"what was taken back is not given", http.StatusForbidden, false},
		"gone":    {"what was taken back is not given", http.StatusNotFound, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tagged{tags: `"v1.0.0","v2.0.0"`}
				r := newResolver(t, s, forAnswers, nil)
				r.cfg.Tags = life
				ask := func() (string, error) {
					t.Helper()
					got, err := r.ResolveImage(t.Context(), newest)
					_, tag, _ := strings.Cut(got.GetReference(), ":")
					synctest.Wait() // what goes on in the background ends
					return tag, err
				}
				expect := func(want string) {
					t.Helper()
					if got, err := ask(); got != want || err != nil {
						t.Errorf("%q, %v, want %q", got, err, want)
					}
				}
				expect("v1.0.0")
				s.become(`"v1.0.0","v1.1.0","v2.0.0"`, 0)
				<-time.After(life.TTL/2 - time.Nanosecond)
				expect("v1.0.0")
				<-time.After(time.Nanosecond)
				expect("v1.0.0") // refreshed in the background
				expect("v1.1.0")
				if s.lists != 2 {
					t.Errorf("%d lists were read, want two", s.lists)
				}
				known := time.Now()
				s.become("", tc.status)
				for time.Since(known) < life.Stale-30*time.Second {
					<-time.After(30 * time.Second)
					got, err := ask()
					if age := time.Since(known); age >= life.TTL && !tc.kept {
						if fault.Of(err) != fault.Precondition {
							t.Fatalf("%q, %v after %v, want a refusal: %s", got, err, age, tc.reason)
						}
					} else if got != "v1.1.0" || err != nil {
						t.Fatalf("%q, %v after %v, want what is known: %s", got, err, age, tc.reason)
					}
				}
				<-time.After(time.Minute)
				if got, err := ask(); err == nil {
					t.Errorf("%q after an hour, want an error: it may be wrong by now", got)
				}
				s.become(`"v1.2.0"`, 0)
				<-time.After(life.TTL)
				expect("v1.2.0")
			})
		})
	}
}

// TestTagsInUseDoNotExpire asks once for a tag: its answer is refreshed until an hour later.
func TestTagsInUseDoNotExpire(t *testing.T) {
	for idle, known := range map[time.Duration]bool{100 * time.Minute: true, 3 * time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &tagged{tags: `"v1.0.0"`}
			r := newResolver(t, s, forAnswers, nil)
			r.cfg.Tags = life
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = r.Run(ctx) }() // it returns nil
			if _, err := r.ResolveImage(ctx, newest); err != nil {
				t.Fatal(err)
			}
			<-time.After(idle)
			s.become("", http.StatusServiceUnavailable)
			if _, err := r.ResolveImage(ctx, newest); (err == nil) != known {
				t.Errorf("%v after the last request: %v, want an answer: %t", idle, err, known)
			}
		})
	}
}
