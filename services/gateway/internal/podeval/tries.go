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

// samePod is the backoff before an evaluation is retried on a pod that already broke. The pod-manager grants such a
// pod again only after a successful health check.
var samePod = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.2}

// tries are the failed attempts of an evaluation: the attempts that found a broken pod.
type tries struct {
	began    time.Time
	attempts int32
	// counted is the number of attempts that count toward MaxRetries. An attempt that sent the evaluation always
	// counts. See [tries.addAttempt] for the rest.
	counted int
	pods    []string // pods of the attempts, without duplicates
	backoff retry.Backoff
}

// triedPod reports whether there was an attempt on a pod.
func (t *tries) triedPod(pod string) bool { return slices.Contains(t.pods, pod) }

// addAttempt records a failed attempt, and reports whether there was an earlier attempt on the same pod.
//
// Three kinds of attempts do not count toward MaxRetries, because they did not send the evaluation. They are retried
// until the evaluation's deadline: attempts whose connection timed out, because that indicates a busy pod or node;
// attempts whose DNS lookup failed, because another pod would not help; and repeated attempts on a pod, because the
// pod has since passed a health check. If the evaluation has no deadline, all attempts count.
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

// endsInTime reports whether an evaluation has a deadline or a time limit.
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

// waitToRetry waits before a retry on the same pod. It returns an error if the evaluation's deadline passes during
// the wait.
func (t *tries) waitToRetry(ctx context.Context, req evaluation.Request, broken *brokenPodError) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	if t.backoff.Wait(ctx) {
		return nil
	}
	doing := fmt.Sprintf("waiting to try again: %v%s", broken, t.describePods())
	return interruptedError(ctx, req.Given, time.Since(t.began), doing)
}

// describePods describes the attempts and their pods for an error. The text is empty after a single attempt.
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
