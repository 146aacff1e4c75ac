// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"log/slog"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// minPause and maxPause bound the wait before reconnecting to a lost source. Gateways often start before pod-managers,
	// and evaluations need the list soon.
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// Follow watches a source until ctx is done, and reconnects when the source is lost: the last list stays in use until
// then. A loss is logged once.
func Follow(ctx context.Context, source Source, log *slog.Logger, use func([]Binary) Problems) {
	backoff := retry.Backoff{First: minPause, Max: maxPause, Jitter: 1}
	lost := false
	for {
		err := source.Watch(ctx, func(list []Binary) Problems {
			if lost {
				log.InfoContext(ctx, "FunctionConfigs for local binaries known again")
			}
			lost = false
			backoff.Reset()
			return use(list)
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			lost = true
			log.WarnContext(ctx, "FunctionConfigs for local binaries unknown; the last ones stay in force", "error", err)
		}
		if !backoff.Wait(ctx) {
			return
		}
	}
}
