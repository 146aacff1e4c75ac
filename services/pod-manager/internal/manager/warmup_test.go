package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

func TestWarmUp(t *testing.T) {
	tests := map[string]struct {
		reason, image, broken, fails string
		takes                        time.Duration
	}{
		"pod":    {"until it is ready", "fn:v1", "", "", time.Second},
		"broken": {"whoever wants it decides when to try again", "fn:v1", "exceeded quota", "exceeded quota", 0},
		"image":  {"nor can there be one of an image that is not there", "bad:v1", "", "401 Unauthorized", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, &cluster{broken: tc.broken}, resolver{})
				begin := time.Now()
				await, err := m.WarmUp(t.Context(), tc.image)
				if err == nil {
					err = await(t.Context())
				}
				if took := time.Since(begin); took != tc.takes || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v after %v, want %q after %v: %s", err, took, tc.fails, tc.takes, tc.reason)
				}
			})
		})
	}
}

// TestWarmUpOfWhatIsWarm has a pod there already, and two who want it.
func TestWarmUpOfWhatIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{})
		for _, patience := range []time.Duration{time.Nanosecond, time.Minute, time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			await, err := m.WarmUp(ctx, "fn:v1")
			if err != nil {
				t.Fatal(err)
			}
			if err := await(ctx); (err != nil) != (patience < time.Second) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v of patience: %v", patience, err)
			}
			cancel()
		}
		held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil || held.Granted().GetColdStart() || len(c.requests) != 1 {
			t.Errorf("%v, %v, after %d pods: want a place on the only one", held, err, len(c.requests))
		}
		held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
	})
}
