// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// retryFor is the maximum total time of [Retry].
const retryFor = 5 * time.Second

// Retry calls the function do until it succeeds or fails permanently, or until 5 s (retryFor) have passed. After this
// timeout, it returns the last error from before the timeout.
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
		if !backoff.Wait(ctx) {
			return last
		}
	}
}

// IsTransient reports whether a retry of a request may help. It returns true if the API server was busy or unreachable,
// and for errors marked with [Transient]. All other refusals of the API server are permanent.
func IsTransient(err error) bool {
	if mark := (transient{}); errors.As(err, &mark) {
		return true
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) // the API server did not answer
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}

// Transient marks an error of the API server as transient, because the same request may succeed later.
func Transient(err error) error { return transient{err} }

type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Outcome returns the metric label for the result of a request: "ok", the reason that the API server gave for a
// failure, or "NoAnswer". It never returns the text of an error, so that the label has few values.
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "NoAnswer"
}

// NewBackoff returns the delays between requests to the API server. If the API server requests a delay, client-go waits
// and repeats the request itself, before it returns an error.
func NewBackoff() *retry.Backoff {
	return &retry.Backoff{First: 50 * time.Millisecond, Max: time.Second, Jitter: 0.2}
}
