// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// persist evaluates a function that leaves files, and then another function that must not find them.
var persist = Attack{
	Name: "files that stay", Programs: runners,
	Run: func(ctx context.Context, t *Target) error {
		if _, err := t.evaluate(ctx, system.Hostile, List("leave", "", 0)); err != nil {
			return err
		}
		return t.attemptBreach(ctx, List("find", "", 0))
	},
}
