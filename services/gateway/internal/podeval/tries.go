// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// samePod is the delay before a retry on a pod that failed in an earlier attempt of the evaluation. The pod-manager
// leases such a pod again only after a successful health check.
var samePod = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.2}

// tries records the attempts of an evaluation that failed because of their pods.
type tries struct {
	began    time.Time
	attempts int32
	// counted is the number of failed attempts that count toward MaxRetries, see [tries.addAttempt].
	counted int
	pods    []string // pods that failed, without duplicates
	backoff retry.Backoff
}

// triedPod reports whether an earlier attempt of the evaluation failed on the pod.
func (t *tries) triedPod(pod string) bool { return slices.Contains(t.pods, pod) }

// addAttempt records an attempt that failed because of its pod. It returns true if an earlier attempt failed on the
// same pod. Usually the attempt counts toward MaxRetries. There is an exception if a deadline or a time limit ends the
// retries, and the request was not sent to the pod. The attempt then does not count in these cases:
//
//   - The connection timed out, which indicates a busy pod or node.
//   - The DNS lookup failed, so that another pod would not help.
//   - An earlier attempt was on the same pod, which has since passed a health check.
func (t *tries) addAttempt(ctx context.Context, req evaluation.Request, broken *brokenPodError) (again bool) {
	t.attempts++
	again = t.triedPod(broken.pod)
	unknown := broken.notCalled && lookupFailed(broken.cause)
	if !again && !unknown {
		t.pods = append(t.pods, broken.pod)
	}
	switch {
	case !broken.notCalled, !endsInTime(ctx, req), !again && !unknown && !isTimeout(broken.cause):
		t.counted++
	}
	return again
}

// endsInTime reports whether a deadline or a time limit ends the retries of an evaluation.
func endsInTime(ctx context.Context, req evaluation.Request) bool {
	_, ok := ctx.Deadline()
	return ok || req.Limit.For > 0
}

func isTimeout(err error) bool {
	if timeout, ok := errors.AsType[net.Error](err); ok {
		return timeout.Timeout()
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// waitToRetry waits for the backoff delay before a retry on the same pod. It returns an error if the evaluation's
// deadline passes during the wait.
func (t *tries) waitToRetry(ctx context.Context, req evaluation.Request, broken *brokenPodError) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	if t.backoff.Wait(ctx) {
		return nil
	}
	doing := fmt.Sprintf("waiting to try again: %v%s", broken, t.describePods())
	return interruptedError(ctx, req.Given, time.Since(t.began), doing)
}

// describePods returns the end of an error message, which describes the failed attempts and their pods. It is empty
// after a single attempt.
func (t *tries) describePods() string {
	switch pods := len(t.pods); {
	case t.attempts == 1:
		return ""
	case pods == 0:
		return fmt.Sprintf(" (tried %d times)", t.attempts)
	case pods == 1:
		return fmt.Sprintf(" (tried %d times on this pod)", t.attempts)
	case pods < int(t.attempts):
		return fmt.Sprintf(" (tried %d times on %d pods: %s)", t.attempts, pods, strings.Join(t.pods, ", "))
	default:
		return fmt.Sprintf(" (%d pods broke one after the other: %s)", pods, strings.Join(t.pods, ", "))
	}
}
