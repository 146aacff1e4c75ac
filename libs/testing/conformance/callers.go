// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// callTimeout is the timeout of calls of endless functions.
const callTimeout = 300 * time.Millisecond

// testCancel tests that endless functions stop when their caller leaves or the deadline passes.
func testCancel(t *testing.T, target Target) {
	for _, behaviour := range []string{"hang", "hang-with-child", "ignore-sigterm"} {
		t.Run(behaviour, func(t *testing.T) {
			fn := target.Serve(t, behaviour)
			cancelCall(t, fn)
			checkHealthy(t, fn)
			checkTimedOut(t, fn, callTimeout, "…")
			checkTimedOut(t, fn, 0, "after 0s, before it began: …")
			checkHealthy(t, fn)
			checkOthers(t, target)
		})
	}
	for _, behaviour := range []string{"orphan", "daemon"} {
		t.Run(behaviour, func(t *testing.T) {
			// The answer must not wait for a child that does not hold the output.
			checkAlive(t, target.Serve(t, behaviour))
		})
	}
}

// cancelCall calls the endless function fn with a deadline that the client enforces.
func cancelCall(t *testing.T, fn Function) {
	t.Helper()
	client := evaluator.NewFunctionEvaluatorClient(dialServer(t, fn.Address))
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	_, err := client.EvaluateFunction(ctx, newRequest(fn, List))
	if got := status.Code(err); got != codes.DeadlineExceeded {
		t.Errorf("code %v, want DeadlineExceeded", got)
	}
}

// checkTimedOut checks the server's answer to a call with the given timeout. With the timeout 0, the deadline passes
// before the evaluation begins.
func checkTimedOut(t *testing.T, fn Function, timeout time.Duration, reason string) {
	t.Helper()
	code, message := Answer(t, fn, timeout)
	if code != connect.CodeDeadlineExceeded.String() {
		t.Errorf("with the timeout %v the server answers with code %s, want %v",
			timeout, code, connect.CodeDeadlineExceeded)
	}
	checkText(t, message, "function evaluation timed out for "+fn.Image+": "+reason)
}

// testManyCallers tests more concurrent callers than there are slots for functions.
func testManyCallers(t *testing.T, target Target) {
	fn := target.Serve(t, "sleep=20ms")
	client := evaluator.NewFunctionEvaluatorClient(dialServer(t, fn.Address))
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			resp, err := client.EvaluateFunction(t.Context(), newRequest(fn, List))
			if err != nil || string(resp.GetResourceList()) != List {
				t.Errorf("got %q, %v", resp.GetResourceList(), err)
			}
		})
	}
	callers.Wait()
}
