// SPDX-License-Identifier: Apache-2.0

package process

import "time"

const (
	shortestPause = 250 * time.Millisecond
	longestPause  = 8 * time.Second
	// A program that ran this long was healthy: its next failure starts a new series.
	healthy = 10 * time.Second
)

// backoff is the wait before a program is restarted.
type backoff struct {
	pause time.Duration
}

// next returns the wait before the restart of a program that ran for the given time.
func (b *backoff) next(ran time.Duration) time.Duration {
	switch {
	case b.pause == 0 || ran >= healthy:
		b.pause = shortestPause
	default:
		b.pause = min(2*b.pause, longestPause)
	}
	return b.pause
}
