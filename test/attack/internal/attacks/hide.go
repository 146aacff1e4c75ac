// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// hide evaluates a function that leaves a spy process in the server's process group. The spy must not change the
// outputs of later evaluations, and the server must kill the spy.
var hide = Attack{
	Name: "spy in the server's group", Programs: runners,
	Run: func(ctx context.Context, t *Target) error {
		if _, err := t.evaluate(ctx, system.Hostile, List("hide", "", 0)); err != nil {
			return fmt.Errorf("hide: %w", err)
		}
		changed := runAll(3, func(int) error {
			answer, err := t.evaluate(ctx, system.Steady, secretList)
			if err == nil && !bytes.Equal(answer.GetResourceList(), secretList) {
				return errors.New("a hidden process changed another caller's output")
			}
			return err
		})
		return errors.Join(changed, t.noneLeft(ctx, "spy"))
	},
}
