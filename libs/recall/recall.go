// Package recall remembers what another service said, so that work on what is warm
// needs no word from it, nor waits for one that is away.
package recall

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Config is what a Memory works with.
type Config[K comparable, V any] struct {
	// Ask asks the other service. Its errors have fault classes.
	Ask func(ctx context.Context, key K) (V, error)
	// Size is what an answer counts. It is never less than 1.
	Size func(answer V) int
	// MaxSize bounds the sum of what is remembered.
	MaxSize int
}

// Memory asks questions, and remembers the answers. Answers are shared: they must not
// be changed. Use [New].
type Memory[K comparable, V any] struct {
	cfg     Config[K, V]
	running sync.WaitGroup

	mu        sync.Mutex
	known     map[K]answer[V]
	size      int
	questions map[K]*question[V]
	stopped   bool
}

// New returns a memory with nothing in it. What it does in the background ends with
// [Memory.Run].
func New[K comparable, V any](cfg Config[K, V]) *Memory[K, V] {
	return &Memory[K, V]{cfg: cfg, known: make(map[K]answer[V]), questions: make(map[K]*question[V])}
}

// Recall returns an answer without waiting for anybody, if there is one that is good
// enough. When that is due, it is asked for anew in the background.
func (m *Memory[K, V]) Recall(key K) (said V, ok bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.known[key]
	if !ok || !known.atOnce(now) {
		return said, false
	}
	if known.due(now) {
		m.renew(context.Background(), key)
	}
	return known.said, true
}

// Get returns an answer, and waits for the other service to give it unless it did so a
// moment ago, or is away. Errors are those of the other service and of ctx.
func (m *Memory[K, V]) Get(ctx context.Context, key K) (V, error) {
	known, renewal, ok := m.lookUp(ctx, key)
	switch {
	case !ok:
		return m.ask(ctx, key)
	case renewal == nil:
		return known, nil
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := renewal.wait(limited)
	if err != nil && ctx.Err() == nil && noWord(err) {
		m.missed(key) // nobody else waits for this renewal
		return known, nil
	}
	return said, err
}

// lookUp returns a usable answer, and the renewal that it makes sense to wait for.
func (m *Memory[K, V]) lookUp(ctx context.Context, key K) (said V, wait *question[V], ok bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.known[key]
	if !ok || !known.usable(now) {
		return said, nil, false
	}
	if known.due(now) {
		wait = m.renew(ctx, key)
	}
	if known.away(now) {
		wait = nil
	}
	return known.said, wait, true
}

// ask asks the other service, or waits for its answer to somebody who is asking the
// same. If that one leaves, another asks.
func (m *Memory[K, V]) ask(ctx context.Context, key K) (said V, err error) {
	for ctx.Err() == nil {
		q, mine := m.join(key)
		if mine {
			return m.put(ctx, key, q)
		}
		said, err = q.wait(ctx)
		if !errors.Is(err, errLeft) {
			return said, err
		}
	}
	return said, ctx.Err()
}

// Run waits for ctx to end, then ends what goes on in the background.
func (m *Memory[K, V]) Run(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	m.stopped = true
	for _, q := range m.questions {
		q.cancel()
	}
	m.mu.Unlock()
	m.running.Wait()
	return nil
}

// noWord says whether err says nothing of what was asked: nobody was reached, or had
// the time.
func noWord(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Exhausted, fault.DeadlineExceeded, fault.Canceled:
		return true
	default:
		return false
	}
}
