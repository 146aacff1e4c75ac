package registry

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns bound how many fetches use the network at a time, and how many of them wait for
// the same registry: one that does not answer must not hold up those of others.
type turns struct {
	all   *semaphore.Weighted
	limit int64 // of each registry

	mu         sync.Mutex
	registries map[string]*queue
}

// queue is the turns of one registry. It is there as long as somebody wants one.
type queue struct {
	turns *semaphore.Weighted
	users int
}

func newTurns(concurrent int64) *turns {
	return &turns{all: semaphore.NewWeighted(concurrent), limit: max(1, concurrent/4), registries: make(map[string]*queue)}
}

// take waits for a turn with a registry. Release gives it back.
func (t *turns) take(ctx context.Context, host string) (release func(), err error) {
	q := t.enter(host)
	if err := q.turns.Acquire(ctx, 1); err != nil {
		t.leave(host, q)
		return nil, fmt.Errorf("registry %s: %d fetches from it go on already, which is the limit: %w", host, t.limit, err)
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		q.turns.Release(1)
		t.leave(host, q)
		return nil, fmt.Errorf("registry %s: too many fetches from all registries go on already: %w", host, err)
	}
	return func() {
		t.all.Release(1)
		q.turns.Release(1)
		t.leave(host, q)
	}, nil
}

// enter returns the queue of a registry.
func (t *turns) enter(host string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, ok := t.registries[host]
	if !ok {
		q = &queue{turns: semaphore.NewWeighted(t.limit)}
		t.registries[host] = q
	}
	q.users++
	return q
}

// leave forgets a queue in which nobody is any more, since callers choose registries.
func (t *turns) leave(host string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.registries, host)
	}
}
