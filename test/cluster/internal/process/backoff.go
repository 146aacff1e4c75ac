// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
	// A program that ran this long was healthy: its next failure starts a new series.
	healthy = 10 * time.Second
)

// backoff is the wait before a program is restarted.
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
