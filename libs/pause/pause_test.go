package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/pause"
)

func TestFor(t *testing.T) {
	tests := map[string]struct {
		d, lasts, takes time.Duration
		whole           bool
		reason          string
	}{
		"whole":     {time.Second, time.Minute, time.Second, true, "the context outlasts it"},
		"cut short": {time.Minute, time.Second, time.Second, false, "each wait ends with its context"},
		"none":      {0, time.Minute, 0, true, "there is nothing to wait for"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.lasts)
				defer cancel()
				begin := time.Now()
				if whole, took := pause.For(ctx, tc.d), time.Since(begin); whole != tc.whole || took != tc.takes {
					t.Errorf("%t after %s, want %t after %s: %s", whole, took, tc.whole, tc.takes, tc.reason)
				}
			})
		})
	}
}
