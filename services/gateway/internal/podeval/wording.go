// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// evaluatePrefix returns the beginning of all error messages about a call to a pod.
func evaluatePrefix(image string) string {
	return fmt.Sprintf(function.PodPrefix, image)
}

// notLeased returns the error for an evaluation that got no pod. The argument last is the latest wait that the
// pod-manager reported, or nil. The argument took is the time since the gateway requested the lease.
func notLeased(ctx context.Context, image string, last *lease.Waiting, took time.Duration, err error) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, image, took, "waiting for a pod: "+describeWait(last))
	}
	if fault.Of(err) == fault.DeadlineExceeded && retry.NearDeadline(ctx) {
		return function.Interrupted(err, image, took, "waiting for a pod: "+describeWait(last))
	}
	err = fmt.Errorf(function.LeasePrefix+"%w", image, err)
	switch fault.Of(err) {
	case fault.NotFound, fault.Unimplemented:
		// Do not return NotFound or Unimplemented: the caller would conclude that another runtime serves the image.
		return fault.New(fault.Unavailable, "%w: check the pod-manager's address and version", err)
	case fault.DeadlineExceeded, fault.Canceled:
		// The pod-manager's own deadline has passed, but not the caller's deadline. The caller may therefore retry.
		return fault.New(fault.Unavailable, "%w", err)
	default:
		return err
	}
}

// interruptedError returns the error for a caller whose context has ended. The argument doing describes the interrupted
// step, such as "waiting for a pod". The argument took is the duration of the step.
func interruptedError(ctx context.Context, image string, took time.Duration, doing string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return function.Interrupted(function.ContextErr(ctx), image, took, doing)
	}
	return function.Interrupted(context.Cause(ctx), image, took, doing)
}

// describeWait describes the last wait of a lease, for an error. w is nil if the pod-manager reported no wait.
func describeWait(w *lease.Waiting) string {
	if w == nil {
		return "the pod-manager has not answered"
	}
	words := cmp.Or(evalphase.Describe(evalphase.Name(w.GetPhase())), "asking the pod-manager")
	if w.GetPosition() > 0 {
		words = fmt.Sprintf("%s at position %d", words, w.GetPosition())
	}
	if w.GetPod() != "" {
		words = fmt.Sprintf("%s, pod %s", words, w.GetPod())
	}
	if w.GetReason() != "" {
		words = fmt.Sprintf("%s (%s)", words, w.GetReason())
	}
	return words
}
