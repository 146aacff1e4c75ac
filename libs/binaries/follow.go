// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"log/slog"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// minPause and maxPause are the minimum and the maximum wait before Follow reconnects to a source. The first wait
	// is short because gateways often start before pod-managers, and evaluations need the list.
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// Follow calls the function use with each new list of binaries until ctx is done. If the connection to the source
// is lost, Follow logs this once and reconnects. Meanwhile, the last list remains in use.
func Follow(ctx context.Context, source Source, log *slog.Logger, use func([]Binary) Problems) {
	backoff := retry.Backoff{First: minPause, Max: maxPause, Jitter: 1}
	lost := false
	for {
		err := source.Watch(ctx, func(list []Binary) Problems {
			if lost {
				log.InfoContext(ctx, "FunctionConfigs for local binaries received again")
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
			log.WarnContext(ctx, "FunctionConfigs for local binaries unavailable, using the last ones", "error", err)
		}
		if !backoff.Wait(ctx) {
			return
		}
	}
}
