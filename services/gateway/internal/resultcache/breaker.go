// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"sync"
	"time"
)

const (
	// maxFailures is how many calls in a row may fail before a breaker opens.
	maxFailures = 3
	// breakerPause is how long a breaker stays open until one call may try again.
	breakerPause = 5 * time.Second
)

// breaker permits calls to a server until some in a row have failed, and then one in each pause, until one
// succeeds.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // of the pause
}

// permits reports whether a call may be made now. After a pause, it permits one, and the next one a pause later.
func (b *breaker) permits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	now := time.Now()
	if now.Before(b.until) {
		return false
	}
	b.until = now.Add(breakerPause)
	return true
}

// failed records a failed call, and reports whether it opened the breaker.
func (b *breaker) failed() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures >= maxFailures {
		b.until = time.Now().Add(breakerPause)
	}
	return b.failures == maxFailures
}

// succeeded records a call that succeeded, and reports whether it closed the breaker.
func (b *breaker) succeeded() (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closed = b.failures >= maxFailures
	b.failures = 0
	return closed
}
