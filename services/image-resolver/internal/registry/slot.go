// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
)

const (
	// smallAnswers is how much the answers of a session may have together before they count
	// as large. Most manifests and configurations have a few KiB.
	smallAnswers = 64 << 10
	// maxLarge bounds how many sessions may read more than that at a time, and
	// maxLargePerRegistry how many with one registry: an answer may have 4 MiB, and takes up
	// to twice that while it is read.
	maxLarge            = 4
	maxLargePerRegistry = 2
)

// slot is the right to fetch from a registry. It is used by one goroutine at a time.
type slot struct {
	limiter  *limiter
	registry *limited
	large    bool
}

// answered records that the registry has sent a whole answer, and not only said that it is a
// registry: that alone would keep the slots for one that answers nothing else.
func (s *slot) answered() { s.limiter.prove(s.registry, true) }

// grow waits until the session may read large answers.
func (s *slot) grow(ctx context.Context) error {
	if s.large {
		return nil
	}
	if err := s.registry.large.Acquire(ctx, 1); err != nil {
		return fmt.Errorf(
			"%d other answers of more than %d KiB are being read from this registry: %w",
			maxLargePerRegistry,
			smallAnswers>>10,
			err,
		)
	}
	if err := s.limiter.large.Acquire(ctx, 1); err != nil {
		s.registry.large.Release(1)
		return fmt.Errorf("%d other answers of more than %d KiB are being read: %w", maxLarge, smallAnswers>>10, err)
	}
	s.large = true
	return nil
}

// release gives the slot back.
func (s *slot) release() {
	if s.large {
		s.limiter.large.Release(1)
		s.registry.large.Release(1)
	}
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(s.registry, -1)
	l.leave(s.registry)
	l.grant()
}
