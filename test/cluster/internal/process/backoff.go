package process

import "time"

const (
	shortestPause = 250 * time.Millisecond
	longestPause  = 8 * time.Second
	// A program that ran this long was healthy: its next failure is a new one.
	healthy = 10 * time.Second
)

// backoff is the pause before a program is started again.
type backoff struct {
	pause time.Duration
}

// next returns the pause after a program ended that had run for a while.
func (b *backoff) next(ran time.Duration) time.Duration {
	switch {
	case b.pause == 0 || ran >= healthy:
		b.pause = shortestPause
	default:
		b.pause = min(2*b.pause, longestPause)
	}
	return b.pause
}
