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

// callTimeout is the timeout for calls of functions that never return.
const callTimeout = 300 * time.Millisecond

// testCancel tests that the server stops a function when its caller disconnects or its deadline passes.
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
			// The function leaves a child process, but the child does not keep the function's output open. The server must
			// therefore answer immediately.
			checkAlive(t, target.Serve(t, behaviour))
		})
	}
}

// cancelCall calls fn, which never returns. The gRPC client cancels the call when its deadline passes.
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

// checkTimedOut calls fn, which never returns, and checks the server's timeout error. The error message must end with
// the text reason. If timeout is 0, the deadline passes before the evaluation begins.
func checkTimedOut(t *testing.T, fn Function, timeout time.Duration, reason string) {
	t.Helper()
	code, message := Answer(t, fn, timeout)
	if code != connect.CodeDeadlineExceeded.String() {
		t.Errorf("with the timeout %v the server answers with code %s, want %v",
			timeout, code, connect.CodeDeadlineExceeded)
	}
	checkText(t, message, "function evaluation timed out for "+fn.Image+": "+reason)
}

// testManyCallers tests 64 concurrent callers. The server cannot evaluate so many requests at once.
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
