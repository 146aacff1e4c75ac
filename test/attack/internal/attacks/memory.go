// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"errors"
	"strconv"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// eatMemory has functions use more memory than there is. The kernel has to end them, and not
// their server.
var eatMemory = Attack{
	Name: "functions that eat memory", Programs: runners, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		if !t.Limited() {
			return nil // it would be this machine's memory
		}
		return all(4, func(int) error {
			if _, err := t.evaluate(ctx, system.Hostile, List("eat", strconv.Itoa(2*system.Limit), 0)); err == nil {
				return errors.New("a function used more memory than there is")
			}
			return nil
		})
	},
}
