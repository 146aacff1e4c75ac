// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
	// healthy is the run time of a program after which its next restart waits only for minBackoff again.
	healthy = 10 * time.Second
)

// backoff computes how long the supervisor waits before it restarts a program that has exited.
type backoff struct{ retry.Backoff }

func newBackoff() backoff {
	return backoff{retry.Backoff{First: minBackoff, Max: maxBackoff}}
}

// next returns how long to wait before the restart of a program that ran for the given time.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= healthy {
		b.Reset()
	}
	return b.Next()
}
