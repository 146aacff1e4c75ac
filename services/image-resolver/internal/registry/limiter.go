// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"
)

const (
	// maxUnproven is how many fetches a registry gets before it has answered one.
	maxUnproven = 2
	// silence is how long a registry may leave all its fetches without an answer until it
	// counts as one that does not answer.
	silence = 2 * time.Second
	// maxProven bounds how many registries are known to answer. Callers choose registries.
	maxProven = 256
)

// limiter bounds how many fetches use the network at a time, in all and with each registry.
// Registries that do not answer share half of the fetches at most, so that they do not delay
// those of registries that do.
type limiter struct {
	total, perRegistry int
	// large bounds the fetches that read large answers.
	large *semaphore.Weighted

	mu         sync.Mutex
	registries map[string]*limited // those with fetches or queued fetches
	proven     *simplelru.LRU[string, struct{}]
	queue      list.List // of *queued, over all registries
	// answering and silent count the fetches with registries of each kind.
	answering, silent int
}

// limited is one registry.
type limited struct {
	name   string
	proven bool // it has answered, and was not silent since
	// fetches and queued are how many there are.
	fetches, queued int
	silence         *time.Timer
	// large bounds the registry's share of large answers.
	large *semaphore.Weighted
}

// queued is a fetch that waits for a slot.
type queued struct {
	registry *limited
	granted  chan struct{}
}

func newLimiter(concurrent int64) *limiter {
	total := int(concurrent)
	l := &limiter{
		total: total, perRegistry: max(1, total/4), large: semaphore.NewWeighted(maxLarge),
		registries: make(map[string]*limited),
	}
	l.proven, _ = simplelru.NewLRU[string, struct{}](maxProven, nil) // the only error is a size below one
	return l
}

// acquire waits for a slot to fetch from a registry. The caller has to release it.
func (l *limiter) acquire(ctx context.Context, registry string) (*slot, error) {
	l.mu.Lock()
	r := l.enter(registry)
	r.queued++
	q := &queued{registry: r, granted: make(chan struct{})}
	element := l.queue.PushBack(q)
	l.grant()
	l.mu.Unlock()
	select {
	case <-q.granted:
		return &slot{limiter: l, registry: r}, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-q.granted: // meanwhile
		return &slot{limiter: l, registry: r}, nil
	default:
	}
	l.queue.Remove(element)
	r.queued--
	l.leave(r)
	return nil, fmt.Errorf(
		"registry %s: queued behind %d fetches from it, at most %d are made at a time, and fewer until it answers: %w",
		registry,
		r.fetches,
		l.perRegistry,
		ctx.Err(),
	)
}

// grant starts the queued fetches that fit, in their order. l is locked.
func (l *limiter) grant() {
	var next *list.Element
	for e := l.queue.Front(); e != nil; e = next {
		next = e.Next()
		q := e.Value.(*queued)
		if !l.fits(q.registry) {
			continue
		}
		l.queue.Remove(e)
		q.registry.queued--
		l.count(q.registry, 1)
		close(q.granted)
	}
}

// fits reports whether a registry may have one more fetch. l is locked.
func (l *limiter) fits(r *limited) bool {
	if l.answering+l.silent >= 2*l.total {
		return false // registries that fell silent have too many
	}
	if r.proven {
		return r.fetches < l.perRegistry && l.answering < l.total
	}
	return r.fetches < min(maxUnproven, l.perRegistry) && l.silent < max(1, l.total/2)
}

// count adds n fetches to a registry. l is locked.
func (l *limiter) count(r *limited, n int) {
	if r.proven {
		l.answering += n
	} else {
		l.silent += n
	}
	if r.fetches == 0 && n > 0 {
		r.silence = time.AfterFunc(silence, func() { l.prove(r, false) })
	}
	if r.fetches += n; r.fetches == 0 {
		r.silence.Stop()
	}
}

// prove records whether a registry with fetches answers them.
func (l *limiter) prove(r *limited, answers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.fetches == 0 {
		return // the timer fired while the last fetch ended
	}
	if answers {
		r.silence.Reset(silence)
		l.proven.Add(r.name, struct{}{})
	} else {
		l.proven.Remove(r.name)
	}
	if r.proven == answers {
		return
	}
	fetches := r.fetches
	l.count(r, -fetches)
	r.proven = answers
	l.count(r, fetches)
	l.grant()
}

// enter returns a registry that is in use. l is locked.
func (l *limiter) enter(name string) *limited {
	r, ok := l.registries[name]
	if !ok {
		r = &limited{name: name, proven: l.proven.Contains(name), large: semaphore.NewWeighted(maxLargePerRegistry)}
		l.registries[name] = r
	}
	return r
}

// leave forgets a registry that is no more in use, since callers choose registries. l is
// locked.
func (l *limiter) leave(r *limited) {
	if r.fetches == 0 && r.queued == 0 {
		delete(l.registries, r.name)
	}
}
