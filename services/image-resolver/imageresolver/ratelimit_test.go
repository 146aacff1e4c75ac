// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

// TestCallersHearOfARateLimitInTime has a registry that says when to come back, which is
// later than its callers can wait.
func TestCallersHearOfARateLimitInTime(t *testing.T) {
	tests := map[string]struct {
		reason     string
		image      string
		retryAfter string
		requests   int // for the manifest
	}{
		"soon":      {"tried again, while there is time", "fn:v1", "1", 3},
		"later":     {"told at once, and remembered", "fn:v1", "10", 1},
		"by digest": {"what never changes is not asked for more often", "fn@sha256:" + strings.Repeat("0", 64), "10", 1},
		"no number": {"the pauses are our own then", "fn:v1", "", 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(answer("/manifests/", http.StatusTooManyRequests, "{}", "Retry-After", tc.retryAfter))(t)
			s.config.CacheFailureTTL = time.Minute
			r, _ := start(t, s.config)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
				_, err := r.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/" + tc.image})
				cancel()
				if fault.Of(err) != fault.Exhausted {
					t.Fatalf("%v, want Exhausted: %s", err, tc.reason)
				}
				expectText(t, err, "429", "limits how often")
				if tc.retryAfter != "" {
					expectText(t, err, "(it asks to wait for "+tc.retryAfter+"s)")
				}
				if after, ok := fault.RetryAfter(err); tc.retryAfter == "10" && (!ok || after != 10*time.Second) {
					t.Errorf("retry after %v, %t, want what the registry says", after, ok)
				}
			}
			if got := s.registry.Count("GET /v2/fn/manifests/"); got > tc.requests || got < min(tc.requests, 2) {
				t.Errorf("%d requests, want %d, or fewer as they are slow: %s", got, tc.requests, tc.reason)
			}
		})
	}
}
