// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// hanging evaluates many functions that never exit, without a timeout. It does not attack a wrapper-server, which is
// the server in function pods. Only gateways call this server, and the pod-manager limits the number of their calls.
var hanging = Attack{
	Name: "functions that hang", Programs: runner,
	Run: func(ctx context.Context, t *Target) error { return t.hangFunctions(ctx, 60, 0) },
}

// largeHanging evaluates functions that never exit, with lists of 5 MB. The total size of these lists exceeds the
// program's memory budget for requests.
var largeHanging = Attack{
	Name: "large lists that hang", Programs: []string{system.FunctionRunner, system.Gateway}, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.hangFunctions(ctx, 60, 5<<20) },
}

// hangFunctions evaluates functions that never exit, for several concurrent callers. A rejected caller tries again.
// padding is the number of bytes to add to each list.
func (t *Target) hangFunctions(ctx context.Context, callers, padding int) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	list := List("hang", "", padding)
	return runAll(callers, func(int) error {
		// Send no deadline, because the server would stop the function then. The caller cancels the request when ctx ends.
		left, leave := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, leave)()
		defer leave()
		for ctx.Err() == nil {
			_, _ = t.evaluate(left, system.Hostile, list)
			retry.Sleep(ctx, retryPause)
		}
		return nil
	})
}
