package kube

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/krm-function-runner/function-runner/libs/pause"
)

const (
	// retryFor is how long something is tried again that failed for a passing reason.
	retryFor = 5 * time.Second
	// firstPause and longestPause are the times between two attempts, unless the API
	// server says how long it wants to be left alone.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// retry tries something until it succeeds, fails for good, or time is up. It returns
// the last error that says more than that time is up.
func retry(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	pauses := newPauses()
	var telling error
	for {
		err := do(ctx)
		if err == nil || !passing(err) {
			return err
		}
		if telling == nil || ctx.Err() == nil {
			telling = err
		}
		if !sleep(ctx, pauses.after(err)) {
			return telling
		}
	}
}

// passing says whether trying again may help: the API server is busy or away. Its
// refusals stay what they are.
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

// pauses are the times between attempts.
type pauses struct{ backoff wait.Backoff }

func newPauses() *pauses {
	return &pauses{wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 100, Cap: longestPause}}
}

// after returns the pause after an error.
func (p *pauses) after(err error) time.Duration {
	pause := p.backoff.Step()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = time.Duration(seconds) * time.Second
	}
	return pause
}

// sleep waits; false if ctx ends before, at once if that is certain from the start.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	return pause.For(ctx, d)
}
