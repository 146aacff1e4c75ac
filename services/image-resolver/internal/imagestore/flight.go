// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errClosed is a store that is closed.
var errClosed = errors.New("the image store is closed")

// flights are the pulls that are under way in this process, by image. The zero value is ready to
// use.
type flights struct {
	mu     sync.Mutex
	byKey  map[string]*flight
	closed bool
	wait   sync.WaitGroup
}

// linger is how long a pull that has begun goes on without waiters: callers with timeouts come again, and an image that
// takes longer than they wait arrives all the same.
const linger = 5 * time.Minute

// pullFunc pulls an image, and reports to p what it does.
type pullFunc func(ctx context.Context, p *flight) error

// flight is a pull that all callers share.
type flight struct {
	waiters  int
	cancel   context.CancelFunc
	unwanted *time.Timer   // ends it without waiters; nil as long as it has had some all the time
	begun    atomic.Bool   // it downloads
	done     chan struct{} // closed when err is set
	err      error

	mu      sync.Mutex
	phase   string
	changed chan struct{} // closed when phase changes
}

// join waits for the pull of an image, and begins it if there is none.
func (f *flights) join(
	ctx context.Context, key string, phase func(string), pull pullFunc,
) error {
	p, err := f.enter(ctx, key, pull)
	if err != nil {
		return err
	}
	defer f.leave(key, p)
	for {
		said, changed := p.now()
		if said != "" && phase != nil {
			phase(said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return p.err
		case <-changed:
		}
	}
}

// enter returns the pull of an image, with one waiter more.
func (f *flights) enter(ctx context.Context, key string, pull pullFunc) (*flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	p, ok := f.byKey[key]
	if !ok {
		p = f.begin(ctx, key, pull)
	}
	p.waiters++
	if p.unwanted != nil {
		p.unwanted.Stop()
	}
	return p, nil
}

// begin begins the pull of an image. The caller holds mu.
func (f *flights) begin(ctx context.Context, key string, pull pullFunc) *flight {
	p := &flight{done: make(chan struct{}), changed: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) // it is for all callers
	if f.byKey == nil {
		f.byKey = map[string]*flight{}
	}
	f.byKey[key] = p
	f.wait.Go(func() {
		defer p.cancel()
		p.err = pull(ctx, p)
		f.mu.Lock()
		f.end(key, p)
		f.mu.Unlock()
		close(p.done)
	})
	return p
}

// leave takes a waiter away. A pull that has none ends, at once if it has not begun.
func (f *flights) leave(key string, p *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.waiters--; p.waiters > 0 || f.byKey[key] != p {
		return
	}
	if !p.begun.Load() {
		f.end(key, p)
		return
	}
	p.unwanted = time.AfterFunc(linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if p.waiters == 0 {
			f.end(key, p)
		}
	})
}

// end ends a pull. The next caller does not join it. The caller holds mu.
func (f *flights) end(key string, p *flight) {
	f.remove(key, p)
	p.cancel()
	if p.unwanted != nil {
		p.unwanted.Stop()
	}
}

// remove makes the next caller begin another pull. The caller holds mu.
func (f *flights) remove(key string, p *flight) {
	if f.byKey[key] == p {
		delete(f.byKey, key)
	}
}

// close ends all pulls, and waits until they have ended.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	for _, p := range f.byKey {
		p.cancel()
	}
	f.mu.Unlock()
	f.wait.Wait()
}

// report records what the pull is doing.
func (p *flight) report(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *flight) now() (phase string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase, p.changed
}
