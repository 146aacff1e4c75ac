// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// orphanTimeout bounds the life of a function's orphans, and the time until exited processes are reaped.
const orphanTimeout = 10 * time.Second

// orphans leaves hundreds of processes behind while another evaluation hangs, to which
// they might belong.
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

// noneLeft returns an error if processes in that role, or zombies, stay.
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
