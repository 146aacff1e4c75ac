// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// retryFor bounds the retries after transient failures.
	retryFor = 5 * time.Second
	// firstBackoff and maxBackoff are the times between two attempts, unless the API server
	// asks for another one.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// withRetries calls do until it succeeds, fails permanently, or time is up. It returns the last
// error that shows more than that time is up.
func withRetries(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	backoff := newBackoff()
	var telling error
	for {
		err := do(ctx)
		if err == nil || !passing(err) {
			return err
		}
		if telling == nil || ctx.Err() == nil {
			telling = err
		}
		if !sleep(ctx, backoff.after(err)) {
			return telling
		}
	}
}

// passing reports whether a retry may help: the API server is busy or unreachable. Its refusals
// are final.
func passing(err error) bool {
	if mark := (transient{}); errors.As(err, &mark) {
		return true
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) // no answer at all
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}

// transient marks an answer of the API server that is no refusal although it reads
// like one: the same request may well succeed.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// serverBackoff is a backoff that honours the API server's Retry-After.
type serverBackoff struct{ wait.Backoff }

func newBackoff() *serverBackoff {
	return &serverBackoff{wait.Backoff{Duration: firstBackoff, Factor: 2, Jitter: 0.2, Steps: 100, Cap: maxBackoff}}
}

// after returns how long to wait after an error.
func (b *serverBackoff) after(err error) time.Duration {
	next := b.Step()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		next = time.Duration(seconds) * time.Second
	}
	return next
}

// sleep waits for d. It returns false if ctx ends before, at once if its deadline is nearer than d.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	return retry.Sleep(ctx, d)
}
