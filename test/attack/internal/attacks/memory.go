// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"errors"
	"strconv"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// eatMemory evaluates functions that use more memory than available. The kernel must kill the functions and not the
// server. Tests with -short omit this attack, because well-behaved callers may wait too long: the kernel delays all
// processes in the control group while it reclaims memory.
var eatMemory = Attack{
	Name: "functions that eat memory", Programs: runners,
	Run: func(ctx context.Context, t *Target) error {
		if !t.Limited() {
			return nil // without a limit, the functions would use up this machine's memory
		}
		return runAll(4, func(int) error {
			if _, err := t.evaluate(ctx, system.Hostile, List("eat", strconv.Itoa(2*system.Limit), 0)); err == nil {
				return errors.New("a function used more memory than there is")
			}
			return nil
		})
	},
}
