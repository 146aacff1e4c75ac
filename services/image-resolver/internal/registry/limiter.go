// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"
)

const (
	// maxUnproven is the maximum number of concurrent fetches from a registry that has not sent a complete answer yet.
	maxUnproven = 2
	// maxProven is the maximum number of registries that the limiter remembers as working. A limit is necessary because
	// callers choose the registries.
	maxProven = 256
	// smallAnswers is the total size of a session's answers, in bytes, above which the session counts against maxLarge.
	// Most manifests and configurations have only a few KiB.
	smallAnswers = 64 << 10
	// maxLarge and maxLargePerRegistry limit the concurrent sessions with large answers, in total and for each
	// registry. They bound memory, because an answer may have 4 MiB, and reading it needs up to 8 MiB.
	maxLarge            = 4
	maxLargePerRegistry = 2
)

// limiter limits concurrent fetches, in total and from each registry, and concurrent fetches with large answers.
// Registries without an answer so far share a separate limit, half of the total, and thus do not delay other fetches.
type limiter struct {
	perRegistry             int64
	proven, unproven, large *semaphore.Weighted

	mu         sync.Mutex
	registries map[string]*registryBounds // registries with running or waiting fetches
	answered   *simplelru.LRU[string, struct{}]
}

type registryBounds struct {
	users        int
	slots, large *semaphore.Weighted
}

func newLimiter(concurrent int64) *limiter {
	l := &limiter{
		perRegistry: max(1, concurrent/8), proven: semaphore.NewWeighted(concurrent),
		unproven: semaphore.NewWeighted(max(1, concurrent/2)), large: semaphore.NewWeighted(maxLarge),
		registries: make(map[string]*registryBounds),
	}
	l.answered, _ = simplelru.NewLRU[string, struct{}](maxProven, nil) // the only error is for a size below 1
	return l
}

// slot is the permission for a single fetch from a registry. Only a single goroutine may use it.
type slot struct {
	limiter  *limiter
	name     string
	registry *registryBounds
	pool     *semaphore.Weighted
	weight   int64
	large    bool
	proven   bool // true after the registry has sent a complete answer
}

// acquire waits until a fetch from the registry may begin. The caller must call [slot.release] after the fetch.
func (l *limiter) acquire(ctx context.Context, registry string) (*slot, error) {
	l.mu.Lock()
	r, ok := l.registries[registry]
	if !ok {
		r = &registryBounds{slots: semaphore.NewWeighted(l.perRegistry), large: semaphore.NewWeighted(maxLargePerRegistry)}
		l.registries[registry] = r
	}
	r.users++
	s := &slot{limiter: l, name: registry, registry: r, pool: l.proven, weight: 1}
	if !l.answered.Contains(registry) {
		s.pool = l.unproven
		s.weight = max(1, l.perRegistry/maxUnproven)
	}
	l.mu.Unlock()
	err := r.slots.Acquire(ctx, s.weight)
	if err == nil {
		if err = s.pool.Acquire(ctx, 1); err != nil {
			r.slots.Release(s.weight)
		}
	}
	if err != nil {
		l.forgetUnused(s)
		return nil, fmt.Errorf(
			"registry %s: queued, at most %d fetches from it run at once, and %d until it answers: %w",
			registry, l.perRegistry, min(maxUnproven, l.perRegistry), err)
	}
	return s, nil
}

// forgetUnused releases the slot's reference to the semaphores of its registry. After the last reference, it removes
// the semaphores, which would otherwise accumulate because callers choose the registries.
func (l *limiter) forgetUnused(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.registry.users--; s.registry.users == 0 {
		delete(l.registries, s.name)
	}
}

// recordAnswer records that the registry has sent a complete answer. Answers to pings do not count. Otherwise, a
// registry that answers only pings could occupy slots of working registries.
func (s *slot) recordAnswer() {
	s.proven = true
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.limiter.answered.Add(s.name, struct{}{})
}

// acquireLarge waits until the session may read large answers. Only a few sessions may do this, to limit memory.
func (s *slot) acquireLarge(ctx context.Context) error {
	if s.large {
		return nil
	}
	err := s.registry.large.Acquire(ctx, 1)
	if err == nil {
		if err = s.limiter.large.Acquire(ctx, 1); err != nil {
			s.registry.large.Release(1)
		}
	}
	if err != nil {
		return fmt.Errorf("other answers of more than %d KiB are being read, at most %d at a time, %d from this registry: %w",
			smallAnswers>>10, maxLarge, maxLargePerRegistry, err)
	}
	s.large = true
	return nil
}

// release returns the slot to its limiter. The argument silent is true if the registry did not answer. The registry
// then counts as unproven until its next complete answer, with a lower limit.
func (s *slot) release(silent bool) {
	if silent && !s.proven {
		s.limiter.mu.Lock()
		s.limiter.answered.Remove(s.name)
		s.limiter.mu.Unlock()
	}
	if s.large {
		s.limiter.large.Release(1)
		s.registry.large.Release(1)
	}
	s.pool.Release(1)
	s.registry.slots.Release(s.weight)
	s.limiter.forgetUnused(s)
}
