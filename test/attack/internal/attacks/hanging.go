// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// hanging has many functions that never end evaluated by callers who would wait for ever.
// In a function pod all evaluations are of one function, and the pod-manager sends others
// elsewhere: there is nothing to share.
var hanging = Attack{
	Name: "functions that hang", Programs: runner, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		ctx, cancel := context.WithTimeout(ctx, choose(t, short, long))
		defer cancel()
		return all(60, func(int) error {
			// The server hears of no deadline: ctx ends by leaving.
			left, leave := context.WithCancel(context.WithoutCancel(ctx))
			defer context.AfterFunc(ctx, leave)()
			defer leave()
			_, _ = t.evaluate(left, system.Hostile, List("hang", "", 0))
			return nil
		})
	},
}
