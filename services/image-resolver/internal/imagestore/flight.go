// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var errClosed = errors.New("the image store is closed")

// flights contains the running pulls, by image. Callers of the same image share a pull. The zero value is ready to use.
type flights struct {
	mu     sync.Mutex
	byKey  map[string]*flight
	closed bool
	wait   sync.WaitGroup
}

// linger is the time for which a pull continues after its last caller has left. Callers whose timeout is shorter
// than the pull can thus retry until the image is stored.
const linger = 5 * time.Minute

// pullFunc pulls an image, and reports its progress through p to all waiting callers.
type pullFunc func(ctx context.Context, p *flight) error

// flight is a running pull of an image. All callers that need the image share it.
type flight struct {
	waiters  int
	cancel   context.CancelFunc
	unwanted *time.Timer   // timer that cancels a pull without waiters, nil before its first start
	begun    atomic.Bool   // true after the download has begun
	done     chan struct{} // closed when err is set
	err      error

	mu      sync.Mutex
	phase   string
	changed chan struct{} // closed when phase changes
}

// join waits for the pull of an image, and starts the pull if necessary. It calls phase with progress texts.
func (f *flights) join(ctx context.Context, key string, phase func(string), pull pullFunc) error {
	p, err := f.addWaiter(ctx, key, pull)
	if err != nil {
		return err
	}
	defer f.removeWaiter(key, p)
	for {
		said, changed := p.currentPhase()
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

// addWaiter registers a caller that waits for the pull of an image. It starts the pull if none is running.
func (f *flights) addWaiter(ctx context.Context, key string, pull pullFunc) (*flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	p, ok := f.byKey[key]
	if !ok {
		p = f.startPull(ctx, key, pull)
	}
	p.waiters++
	if p.unwanted != nil {
		p.unwanted.Stop()
	}
	return p, nil
}

// startPull starts the pull of an image. The caller must hold f.mu.
func (f *flights) startPull(ctx context.Context, key string, pull pullFunc) *flight {
	p := &flight{done: make(chan struct{}), changed: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) // the pull must outlive its first caller
	if f.byKey == nil {
		f.byKey = map[string]*flight{}
	}
	f.byKey[key] = p
	f.wait.Go(func() {
		defer p.cancel()
		p.err = pull(ctx, p)
		f.mu.Lock()
		f.cancelPull(key, p)
		f.mu.Unlock()
		close(p.done)
	})
	return p
}

// removeWaiter records that a caller no longer waits for a pull. After the last caller has left, the pull is
// cancelled at once if its download has not begun, and otherwise after five minutes.
func (f *flights) removeWaiter(key string, p *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.waiters--; p.waiters > 0 || f.byKey[key] != p {
		return
	}
	if !p.begun.Load() {
		f.cancelPull(key, p)
		return
	}
	p.unwanted = time.AfterFunc(linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if p.waiters == 0 {
			f.cancelPull(key, p)
		}
	})
}

// cancelPull cancels a pull and removes it, so that the next caller starts a new pull. The caller must hold f.mu.
func (f *flights) cancelPull(key string, p *flight) {
	if f.byKey[key] == p {
		delete(f.byKey, key)
	}
	p.cancel()
	if p.unwanted != nil {
		p.unwanted.Stop()
	}
}

// close cancels all pulls and waits until they have stopped.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	for _, p := range f.byKey {
		p.cancel()
	}
	f.mu.Unlock()
	f.wait.Wait()
}

// setPhase records the progress of the pull as a text, and notifies the waiting callers.
func (p *flight) setPhase(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *flight) currentPhase() (phase string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase, p.changed
}
