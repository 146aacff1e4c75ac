// Package pause waits between two attempts.
package pause

import (
	"context"
	"time"
)

// For lets d pass, or less if ctx ends before. It says whether ctx lasted that long.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
