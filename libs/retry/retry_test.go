// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

func TestSleep(t *testing.T) {
	tests := map[string]struct {
		d, lasts, takes time.Duration
		whole           bool
		reason          string
	}{
		"whole":     {time.Second, time.Minute, time.Second, true, "the context outlasts it"},
		"cut short": {time.Minute, time.Second, time.Second, false, "each wait ends with its context"},
		"none":      {0, time.Minute, 0, true, "there is nothing to wait for"},
		"too late":  {0, 0, 0, false, "the context has ended"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.lasts)
				defer cancel()
				begin := time.Now()
				if whole, took := retry.Sleep(ctx, tc.d), time.Since(begin); whole != tc.whole || took != tc.takes {
					t.Errorf("%t after %s, want %t after %s: %s", whole, took, tc.whole, tc.takes, tc.reason)
				}
			})
		})
	}
}

func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		reason  string
		backoff retry.Backoff
		want    []time.Duration
	}{
		"bounded": {
			"waits double up to the limit",
			retry.Backoff{First: 50, Max: 150},
			[]time.Duration{50, 100, 150, 150},
		},
		"unbounded": {"waits double", retry.Backoff{First: 1}, []time.Duration{1, 2, 4, 8}},
		"zero":      {"it does not wait", retry.Backoff{}, []time.Duration{0, 0}},
		"too small": {"the limit counts", retry.Backoff{First: 50, Max: 10}, []time.Duration{10, 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := tc.backoff
			for range 2 {
				var got []time.Duration
				for range tc.want {
					got = append(got, b.Next())
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("waits %v, want %v: %s", got, tc.want, tc.reason)
				}
				b.Reset()
			}
		})
	}
}

func TestJitter(t *testing.T) {
	differ := false
	b := retry.Backoff{First: time.Second, Max: time.Second, Jitter: 0.5}
	for range 1000 {
		got := b.Next()
		if got < time.Second || got >= 1500*time.Millisecond {
			t.Fatalf("a wait of %v, want a second and up to a half more", got)
		}
		differ = differ || got != time.Second
	}
	if !differ {
		t.Error("all waits are the same")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		begin := time.Now()
		b := retry.Backoff{First: time.Second}
		waits := 0
		for b.Wait(ctx) {
			waits++
		}
		if took := time.Since(begin); waits != 2 || took != 4*time.Second {
			t.Errorf("%d waits in %v, want 1 s, 2 s and the rest of 4 s", waits, took)
		}
	})
}

func TestFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for wait, want := range map[time.Duration]bool{time.Second - 1: true, time.Second: false, time.Hour: false} {
			if got := retry.Fits(ctx, wait); got != want {
				t.Errorf("a wait of %v fits into a second: %t, want %t", wait, got, want)
			}
		}
		if !retry.Fits(t.Context(), time.Hour) {
			t.Error("a wait does not fit into a context without deadline")
		}
	})
}
