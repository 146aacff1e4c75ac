// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
	// healthy is the run time after which a program's restart delay is reset to minBackoff.
	healthy = 10 * time.Second
)

// backoff computes the delay before a program is restarted after an exit.
type backoff struct{ retry.Backoff }

func newBackoff() backoff {
	return backoff{retry.Backoff{First: minBackoff, Max: maxBackoff}}
}

// next returns the delay before the restart of a program. ran is the time for which the program ran.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= healthy {
		b.Reset()
	}
	return b.Next()
}
