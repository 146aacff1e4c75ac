// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
	// A program that ran at least this long was healthy. Its next restart waits only for minBackoff again.
	healthy = 10 * time.Second
)

// backoff computes the waits before restarts of a program.
type backoff struct{ retry.Backoff }

func newBackoff() backoff {
	return backoff{retry.Backoff{First: minBackoff, Max: maxBackoff}}
}

// next returns the wait before the restart of a program that ran for the given time.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= healthy {
		b.Reset()
	}
	return b.Next()
}
