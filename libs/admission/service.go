// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"sync"
	"time"
)

// Bounds of a retry hint: less is of no use over a network, and more would have
// callers wait for a queue that may have emptied long before.
const (
	minHint     = 100 * time.Millisecond
	maxHint     = 30 * time.Second
	defaultHint = time.Second // as long as nothing was observed
)

// weight is the part that the newest time has in the average.
const weight = 0.2

// serviceTime is the moving average of the time between admission and release.
type serviceTime struct {
	mu      sync.Mutex
	average time.Duration // zero if nothing was observed
}

func (s *serviceTime) observe(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.average == 0 {
		s.average = d
		return
	}
	s.average += time.Duration(weight * float64(d-s.average))
}

// untilEmpty returns about how long a full queue takes to empty.
func (s *serviceTime) untilEmpty(limits Limits) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.average == 0 {
		return defaultHint
	}
	rounds := float64(limits.Queue+1) / float64(limits.Concurrent)
	hint := time.Duration(rounds * float64(s.average))
	return min(max(hint, minHint), maxHint)
}
