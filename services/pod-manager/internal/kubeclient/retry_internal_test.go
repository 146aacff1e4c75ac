// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var errNoAnswer = errors.New("connection refused")

func TestRetry(t *testing.T) {
	tests := map[string]struct {
		reason  string
		do      func(ctx context.Context, attempt int) error
		want    error
		took    time.Duration // at least
		atMost  time.Duration
		between [2]int // attempts
	}{
		"at once": {"most succeed", func(context.Context, int) error { return nil }, nil, 0, 0, [2]int{1, 1}},
		"refused": {
			"a refusal stays one",
			func(context.Context, int) error { return apierrors.NewBadRequest("no") }, apierrors.NewBadRequest("no"), 0, 0,
			[2]int{1, 1},
		},
		"in time": {"it comes back", succeedAt(3), nil, 100 * time.Millisecond, time.Second, [2]int{3, 3}},
		"too late": {
			"no caller waits for longer",
			succeedAt(1000), errNoAnswer, 3 * time.Second, retryFor,
			[2]int{5, 20},
		},
		"no answer": {"an attempt that hangs ends in time", func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}, context.DeadlineExceeded, retryFor, retryFor, [2]int{1, 1}},
		"refused, then no answer": {"the error that says more is returned", func(ctx context.Context, attempt int) error {
			if attempt == 1 {
				return errNoAnswer
			}
			<-ctx.Done()
			return ctx.Err()
		}, errNoAnswer, retryFor, retryFor, [2]int{2, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, begin := 0, time.Now()
				err := Retry(t.Context(), func(ctx context.Context) error {
					attempts++
					return tc.do(ctx, attempts)
				})
				if fmt.Sprint(err) != fmt.Sprint(tc.want) {
					t.Errorf("error is %v, want %v: %s", err, tc.want, tc.reason)
				}
				if took := time.Since(begin); took < tc.took || took > tc.atMost {
					t.Errorf("took %v, want %v to %v: %s", took, tc.took, tc.atMost, tc.reason)
				}
				if attempts < tc.between[0] || attempts > tc.between[1] {
					t.Errorf("%d attempts, want %v: %s", attempts, tc.between, tc.reason)
				}
			})
		})
	}
}

// succeedAt returns something that fails until a certain attempt.
func succeedAt(n int) func(context.Context, int) error {
	return func(_ context.Context, attempt int) error {
		if attempt < n {
			return errNoAnswer
		}
		return nil
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := Retry(ctx, func(context.Context) error { return errNoAnswer }); !errors.Is(err, errNoAnswer) {
			t.Errorf("error is %v", err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("took %v after the caller left", took)
		}
	})
}

func TestTransient(t *testing.T) {
	pods := corev1.Resource("pods")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no answer":         {errNoAnswer, true},
		"wrapped":           {fmt.Errorf("create: %w", apierrors.NewServiceUnavailable("starting")), true},
		"time is up":        {context.DeadlineExceeded, true},
		"caller left":       {context.Canceled, false},
		"too many requests": {apierrors.NewTooManyRequestsError("slow down"), true},
		"server timeout":    {apierrors.NewServerTimeout(pods, "create", 1), true},
		"timeout":           {apierrors.NewTimeoutError("etcd", 1), true},
		"internal":          {apierrors.NewInternalError(errNoAnswer), true},
		"bad gateway":       {apierrors.NewGenericServerResponse(502, "create", pods, "pod", "", 0, true), true},
		"marked":            {Transient(apierrors.NewNotFound(pods, "pod")), true},
		"not found":         {apierrors.NewNotFound(pods, "pod"), false},
		"forbidden":         {apierrors.NewForbidden(pods, "pod", errors.New("exceeded quota")), false},
		"unauthorized":      {apierrors.NewUnauthorized("no token"), false},
		"conflict":          {apierrors.NewConflict(pods, "pod", errors.New("changed")), false},
		"exists":            {apierrors.NewAlreadyExists(pods, "pod"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsTransient(tc.err); got != tc.want {
				t.Errorf("transient is %v, want %v", got, tc.want)
			}
		})
	}
}
