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

// callTimeout is the deadline of callers of functions that do not end.
const callTimeout = 300 * time.Millisecond

// testCancel cancels calls of functions that do not end.
func testCancel(t *testing.T, target Target) {
	for _, behaviour := range []string{"hang", "hang-with-child", "ignore-sigterm"} {
		t.Run(behaviour, func(t *testing.T) {
			fn := target.Serve(t, behaviour)
			client := evaluator.NewFunctionEvaluatorClient(dial(t, fn.Address))
			ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
			defer cancel()
			_, err := client.EvaluateFunction(ctx,
				&evaluator.EvaluateFunctionRequest{Image: fn.Image, ResourceList: []byte(List)})
			if got := status.Code(err); got != codes.DeadlineExceeded {
				t.Errorf("code %v, want DeadlineExceeded", got)
			}
			checkHealthy(t, fn)
			// Again, with the server's own answer.
			code, message := Answer(t, fn, callTimeout)
			if code != connect.CodeDeadlineExceeded.String() {
				t.Errorf("the server answers with code %s, want %v", code, connect.CodeDeadlineExceeded)
			}
			checkText(t, message, "function evaluation timed out for "+fn.Image+": …")
			// And a request whose deadline passed before the server began it.
			code, message = Answer(t, fn, 0)
			if code != connect.CodeDeadlineExceeded.String() {
				t.Errorf("the server answers a late request with code %s, want %v", code, connect.CodeDeadlineExceeded)
			}
			checkText(t, message, "function evaluation timed out for "+fn.Image+": after 0s, before it began: …")
			checkHealthy(t, fn)
			if target.NamesFunctions {
				checkAlive(t, target.Serve(t, "echo"))
			}
		})
	}
	for _, behaviour := range []string{"orphan", "daemon"} {
		t.Run(behaviour, func(t *testing.T) {
			// The child holds the pipes open; the answer must not wait for it.
			checkAlive(t, target.Serve(t, behaviour))
		})
	}
}

// testManyCallers has more callers than functions run at a time.
func testManyCallers(t *testing.T, target Target) {
	fn := target.Serve(t, "sleep=20ms")
	client := evaluator.NewFunctionEvaluatorClient(dial(t, fn.Address))
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			resp, err := client.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: fn.Image, ResourceList: []byte(List)})
			if err != nil || string(resp.GetResourceList()) != List {
				t.Errorf("got %q, %v", resp.GetResourceList(), err)
			}
		})
	}
	callers.Wait()
}
