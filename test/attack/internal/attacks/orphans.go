// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// orphanTimeout is the time limit for the server to kill and reap a function's orphans.
const orphanTimeout = 10 * time.Second

// orphans evaluates functions that leave hundreds of processes behind, while another evaluation hangs. The server must
// kill these orphans before the other evaluation ends, although they could belong to that evaluation.
var orphans = Attack{
	Name: "orphans beside a hang", Programs: runners, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		hung, end := context.WithCancel(ctx)
		defer end()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = t.evaluate(hung, system.Hostile, List("hang", "", 0))
		}()
		defer func() { end(); <-ended }()
		for range 3 {
			if _, err := t.evaluate(ctx, system.Hostile, List("orphans", "200", 0)); err != nil {
				return fmt.Errorf("leave orphans: %w", err)
			}
		}
		return t.noneLeft(ctx, "orphan")
	},
}

// noneLeft waits until all helper processes with the given role, such as "orphan", have exited and the server has
// reaped them. It returns an error after orphanTimeout.
func (t *Target) noneLeft(ctx context.Context, role string) error {
	for end := time.Now().Add(orphanTimeout); ; time.Sleep(100 * time.Millisecond) {
		left, zombies := 0, t.Zombies()
		for _, process := range t.Processes() {
			if process.Name == role {
				left++
			}
		}
		if left+zombies == 0 {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%d processes and %d zombies of functions are left after %v", left, zombies, orphanTimeout)
		}
	}
}
