// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// retryFor limits the retries after transient failures.
const retryFor = 5 * time.Second

// Retry calls do until it succeeds, fails permanently, or retryFor is over. It returns the last error other than the
// timeout.
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

// IsTransient reports whether a retry may help: the API server is busy or unreachable. Its refusals are final, unless
// they were marked with [Transient].
func IsTransient(err error) bool {
	if mark := (transient{}); errors.As(err, &mark) {
		return true
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) // no answer
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}

// Transient marks an answer of the API server that reads like a refusal although the same request may succeed later.
func Transient(err error) error { return transient{err} }

type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Backoff is the delay between attempts, unless the API server requests another delay. Use [NewBackoff].
type Backoff struct{ waits retry.Backoff }

// NewBackoff returns the backoff for requests to the API server.
func NewBackoff() *Backoff {
	return &Backoff{retry.Backoff{First: 50 * time.Millisecond, Max: time.Second, Jitter: 0.2}}
}

// Wait waits after an error. It returns false if ctx is done before, at once if the deadline of ctx is too early.
func (b *Backoff) Wait(ctx context.Context, after error) bool {
	next := b.waits.Next()
	if seconds, ok := apierrors.SuggestsClientDelay(after); ok {
		next = time.Duration(seconds) * time.Second
	}
	return retry.Fits(ctx, next) && retry.Sleep(ctx, next)
}
