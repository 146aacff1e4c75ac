package kube

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// retryFor is how long something is tried again that failed for a passing reason.
const retryFor = 5 * time.Second

// retry tries something until it succeeds, fails for good, or time is up. It returns
// the last error.
func retry(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 100, Cap: time.Second}
	for {
		err := do(ctx)
		if err == nil || !passing(err) {
			return err
		}
		pause := backoff.Step()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = time.Duration(seconds) * time.Second
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// passing says whether trying again may help: the API server is busy or away. Its
// refusals stay what they are.
func passing(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) // no answer at all
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}
