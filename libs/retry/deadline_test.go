// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

func TestEarlyDeadline(t *testing.T) {
	tests := map[string]struct {
		left, want time.Duration
		reason     string
	}{
		"long":   {time.Minute, 59 * time.Second, "a second is enough for any answer"},
		"short":  {time.Second, 900 * time.Millisecond, "most of the time is for the work"},
		"passed": {-time.Second, 0, "nothing is left of it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				theirs, cancel := context.WithTimeout(t.Context(), tc.left)
				defer cancel()
				ours, cancel := retry.EarlyDeadline(theirs)
				defer cancel()
				<-ours.Done()
				if took := time.Since(begin); took != tc.want {
					t.Errorf("it ends after %v, want %v: %s", took, tc.want, tc.reason)
				}
				if !retry.NearDeadline(theirs) {
					t.Error("the caller does not believe that the time is over")
				}
			})
		})
	}
}

func TestNearDeadline(t *testing.T) {
	tests := map[string]struct {
		left   time.Duration
		want   bool
		reason string
	}{
		"far":    {retry.DeadlineMargin + time.Nanosecond, false, "no service ends that early"},
		"near":   {retry.DeadlineMargin, true, "a service that ends as early as it may is believed"},
		"passed": {-time.Nanosecond, true, "the time is over"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.left)
				defer cancel()
				if got := retry.NearDeadline(ctx); got != tc.want {
					t.Errorf("Near is %t, want %t: %s", got, tc.want, tc.reason)
				}
			})
		})
	}
}

func TestWithoutDeadline(t *testing.T) {
	ours, cancel := retry.EarlyDeadline(t.Context())
	defer cancel()
	if _, ok := ours.Deadline(); ok || retry.NearDeadline(t.Context()) {
		t.Error("there is a deadline where the caller has none")
	}
}
