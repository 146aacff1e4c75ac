// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// retryFor bounds the retries after transient failures.
const retryFor = 5 * time.Second

// Retry calls do until it succeeds, fails permanently, or time is up. It returns the last
// error that shows more than that time is up.
func Retry(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	backoff := NewBackoff()
	var last error
	for {
		err := do(ctx)
		if err == nil || !IsTransient(err) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !backoff.Wait(ctx, err) {
			return last
		}
	}
}

// IsTransient reports whether a retry may help: the API server is busy or unreachable. Its
// refusals are final, unless they were marked with [Transient].
func IsTransient(err error) bool {
	if mark := (transient{}); errors.As(err, &mark) {
		return true
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) // no answer at all
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}

// Transient marks an answer of the API server that is no refusal although it reads like one:
// the same request may well succeed.
func Transient(err error) error { return transient{err} }

type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Backoff is the waits between attempts, unless the API server asks for another one. Use
// [NewBackoff].
type Backoff struct{ waits retry.Backoff }

// NewBackoff returns the backoff of all requests to the API server.
func NewBackoff() *Backoff {
	return &Backoff{retry.Backoff{First: 50 * time.Millisecond, Max: time.Second, Jitter: 0.2}}
}

// Wait waits after an error. It returns false if ctx ends before, at once if its deadline is
// nearer than the end of the wait.
func (b *Backoff) Wait(ctx context.Context, after error) bool {
	next := b.waits.Next()
	if seconds, ok := apierrors.SuggestsClientDelay(after); ok {
		next = time.Duration(seconds) * time.Second
	}
	return retry.Fits(ctx, next) && retry.Sleep(ctx, next)
}
