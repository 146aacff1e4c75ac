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
	// smallAnswers is the maximum total size of a session's answers, in bytes, that count as small. The limits below apply
	// only to larger answers. Most manifests and configurations have only a few KiB.
	smallAnswers = 64 << 10
	// maxLarge and maxLargePerRegistry limit the concurrent sessions with large answers, in total and for each
	// registry. They bound memory, because an answer may have 4 MiB, and reading it needs up to 8 MiB.
	maxLarge            = 4
	maxLargePerRegistry = 2
)

// limiter limits concurrent fetches, in total and from each registry. Another limit applies to concurrent fetches with
// large answers. Registries that have not answered yet share a separate limit, which is half of the total. Fetches from
// them therefore do not delay other fetches.
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

// forgetUnused records that the slot no longer uses the semaphores of its registry. After the last slot, it removes the
// semaphores. Otherwise, they would accumulate, because callers may name any number of registries.
func (l *limiter) forgetUnused(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.registry.users--; s.registry.users == 0 {
		delete(l.registries, s.name)
	}
}

// recordAnswer records that the registry has sent a complete answer. Answers to pings do not count. This is because a
// registry that answers only pings could then occupy slots of working registries.
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

// release returns the slot to its limiter. If silent is true, the registry did not answer. The registry then counts as
// unproven, with a lower limit, until its next complete answer.
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
