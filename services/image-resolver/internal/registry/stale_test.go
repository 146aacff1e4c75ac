// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// replaced is a credential that may have been replaced.
type replaced struct {
	known, fresh string
	kept         bool
	renewed      atomic.Int64
}

func (r *replaced) Lookup(context.Context, string) (credentials.Credential, error) {
	return r.credential(r.known, r.kept), nil
}

func (r *replaced) Renew(context.Context, string) (credentials.Credential, error) {
	r.renewed.Add(1)
	return r.credential(r.fresh, false), nil
}

func (r *replaced) credential(password string, kept bool) credentials.Credential {
	if password == "" {
		return credentials.Credential{}
	}
	return credentials.Credential{
		Auth:   authn.AuthConfig{Username: "user", Password: password},
		Origin: "config.json",
		Kept:   kept,
	}
}

func TestStaleCredentials(t *testing.T) {
	tests := map[string]struct {
		reason       string
		status       int
		known, fresh string
		kept         bool
		manifests    int // that are asked for
		renewals     int64
		good         bool
	}{
		"401":                {"it was replaced", 401, "old", "new", true, 2, 1, true},
		"403":                {"some registries say so when a token is over", 403, "old", "new", true, 2, 1, true},
		"403, none newer":    {"the registry knows who asks, and says no", 403, "old", "old", true, 1, 1, false},
		"403, not from long": {"it has just been given out", 403, "old", "new", false, 1, 0, false},
		"403, anonymous":     {"nothing was refused", 403, "", "new", false, 1, 0, false},
		"403, newer as bad":  {"that is final", 403, "old", "older", true, 2, 1, false},
		"401, newer as bad":  {"that is final", 401, "old", "older", true, 2, 1, false},
		"good":               {"no other is asked for", 403, "new", "newer", true, 1, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.add(t, "registry.example", func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
					_, password, ok := req.BasicAuth()
					switch {
					case password == "new" || (!ok && req.URL.Path != "/v2/" && tc.known == "new"):
						next.ServeHTTP(rw, req)
					case req.URL.Path == "/v2/":
						rw.Header().Set("WWW-Authenticate", `Basic realm="test"`)
						rw.WriteHeader(http.StatusUnauthorized)
					default:
						testregistry.Refuse(rw, tc.status, "DENIED", "not for you")
					}
				})
			})
			r.Push(t, "fn:v1", v1.Config{})
			w.Insecure = []string{"registry.example"}
			creds := &replaced{known: tc.known, fresh: tc.fresh, kept: tc.kept}
			w.Credentials = creds
			_, err := w.manifest(t, "registry.example/fn", "v1")
			if (err == nil) != tc.good ||
				(err != nil && (fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "not for you"))) {
				t.Errorf("%v, want success: %t, or else the registry's words: %s", err, tc.good, tc.reason)
			}
			if got := r.Count("GET /v2/fn/manifests/"); got != tc.manifests || creds.renewed.Load() != tc.renewals {
				t.Errorf("asked %d times and renewed %d times, want %d and %d: %s", got, creds.renewed.Load(), tc.manifests,
					tc.renewals, tc.reason)
			}
		})
	}
}

// TestWhatBreaksOffIsTriedAgain has a server that resets streams, by HTTP/2, and one that
// breaks off its answers.
func TestWhatBreaksOffIsTriedAgain(t *testing.T) {
	abort := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	half := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"config":`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	tests := map[string]struct {
		reason  string
		protos  []string
		fail    func(http.ResponseWriter)
		always  bool
		answers int
	}{
		"stream reset":         {"servers do that to shed load", []string{"h2"}, abort, false, 2},
		"stream reset, always": {"not for ever", []string{"h2"}, abort, true, 4},
		"answer reset":         {"it is asked for once more", []string{"h2"}, half, false, 2},
		"answer cut off":       {"it is asked for once more", []string{"http/1.1"}, half, false, 2},
		"always cut off":       {"once, and no more", []string{"http/1.1"}, half, true, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEncrypted(t)
			w.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			settings := w.authority.Server(t, time.Now().Add(time.Hour))
			settings.NextProtos = tc.protos
			var failed atomic.Bool
			r := testregistry.Start(
				t,
				settings,
				testregistry.On("/manifests/", func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
					if tc.protos[0] == "h2" && req.ProtoMajor != 2 {
						t.Errorf("asked by %s", req.Proto)
					}
					if !failed.Swap(true) || tc.always {
						tc.fail(rw)
					}
					next.ServeHTTP(rw, req)
				}),
			)
			w.hosts["registry.example"] = r.Host
			r.Push(t, "fn:v1", v1.Config{})
			_, err := w.manifest(t, "registry.example/fn", "v1")
			if (err == nil) == tc.always || (err != nil && fault.Of(err) != fault.Unavailable) {
				t.Errorf("%v, want success: %t, or else Unavailable: %s", err, !tc.always, tc.reason)
			}
			if got := r.Count("GET /v2/fn/manifests/"); got != tc.answers {
				t.Errorf("asked %d times, want %d: %s", got, tc.answers, tc.reason)
			}
		})
	}
}
