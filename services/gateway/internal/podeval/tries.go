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

// samePod is the waits before a pod is tried again that the pod-manager grants once more: it has asked
// the pod for its health, and the pod answered.
var samePod = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.2}

// tries are the attempts of one evaluation that found a broken pod.
type tries struct {
	began    time.Time
	attempts int32
	// counted is how many attempts count: one for each pod, unless a connection took too long, and each
	// one that sent the evaluation.
	counted int
	pods    []string // each once
	backoff retry.Backoff
}

// has reports whether a pod was tried.
func (t *tries) has(pod string) bool { return slices.Contains(t.pods, pod) }

// add records an attempt, and reports whether its pod was tried before.
//
// A pod that takes long to connect to is busy, or its node is, and the evaluation was not sent: such
// attempts end with the caller's deadline. So do attempts whose pod's name cannot be looked up: name servers are to
// blame, and another pod would not help. Without a deadline they count like others.
func (t *tries) add(ctx context.Context, req evaluation.Request, broken *brokenPodError) (again bool) {
	t.attempts++
	again = t.has(broken.pod)
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

// endsInTime reports whether an evaluation has a deadline.
func endsInTime(ctx context.Context, req evaluation.Request) bool {
	_, ok := ctx.Deadline()
	return ok || req.Limit.For > 0
}

// isTimeout reports whether a connection took too long.
func isTimeout(err error) bool {
	if timeout, ok := errors.AsType[net.Error](err); ok {
		return timeout.Timeout()
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// wait waits before the same pod is tried again. It returns an error if the evaluation has no time for it.
func (t *tries) wait(ctx context.Context, req evaluation.Request, broken *brokenPodError) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	if t.backoff.Wait(ctx) {
		return nil
	}
	return left(ctx, req.Given, time.Since(t.began), fmt.Sprintf("waiting to try again: %v%s", broken, t.describe()))
}

// describe returns on which pods an evaluation was tried, if more than once.
func (t *tries) describe() string {
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
