// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// hanging evaluates many functions that never exit, for callers that would wait for ever. Function pods are not
// attacked: only gateways call a pod, and the pod-manager leases them its slots.
var hanging = Attack{
	Name: "functions that hang", Programs: runner,
	Run: func(ctx context.Context, t *Target) error { return t.hangFunctions(ctx, 60, 0) },
}

// largeHanging does that with lists of 5 MB, which together are more than the memory budget.
var largeHanging = Attack{
	Name: "large lists that hang", Programs: []string{system.FunctionRunner, system.Gateway}, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.hangFunctions(ctx, 60, 5<<20) },
}

// hangFunctions has so many callers evaluate lists with so much padding, again when they are refused.
func (t *Target) hangFunctions(ctx context.Context, callers, padding int) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	list := List("hang", "", padding)
	return runAll(callers, func(int) error {
		// The server hears of no deadline: ctx ends by leaving.
		left, leave := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, leave)()
		defer leave()
		for ctx.Err() == nil {
			_, _ = t.evaluate(left, system.Hostile, list)
			pause(ctx, retryPause)
		}
		return nil
	})
}
