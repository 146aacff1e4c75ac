// SPDX-License-Identifier: Apache-2.0

// Package cache stores the answers of a source, up to a limit of bytes. It fetches a missing entry once for all
// callers that wait for it, and refreshes entries in use before they expire. [Last] is for sources that cache their
// answers themselves.
package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// retryWhenFull is the retry hint for callers whose fetch was rejected because MaxFetches were running.
const retryWhenFull = time.Second

// Config configures a Cache. All fields except KeepFor and MaxKept are required.
type Config[K comparable, V any] struct {
	// Fetch gets the value of a key from its source. Its errors have fault classes.
	Fetch func(ctx context.Context, key K) (V, error)
	// Lifetime returns the lifetime of the entry of a key.
	Lifetime func(K) Lifetime
	// MaxBytes limits the sum of the entries' sizes, as counted by Size.
	MaxBytes int64
	// Size returns the memory that a key and its value need, in bytes.
	Size func(K, V) int64
	// MaxFetches is the maximum number of concurrent fetches.
	MaxFetches int
	// FetchTimeout limits a fetch. A fetch continues after its callers have left, so that the next caller finds the
	// value.
	FetchTimeout time.Duration
	// StaleWait is the maximum wait for a fetch if there is a stale entry.
	StaleWait time.Duration
	// KeepFor is the time for which an unused entry is still refreshed in the background, so that its next caller
	// does not wait for the source. It begins with the last use of the entry. If it is zero, only uses refresh an
	// entry.
	KeepFor time.Duration
	// MaxKept is the maximum number of entries that KeepFor applies to. The most recently used entries have priority.
	MaxKept int
}

// Answer is the answer to a query.
type Answer[V any] struct {
	Value V
	// Age is the time since the source returned the value.
	Age time.Duration
	// Source says where the value was found.
	Source Source
}

// Source says where the cache found an answer. Metrics use it as a label.
type Source string

// The sources of answers.
const (
	Hit     Source = "hit"     // found in an entry
	Refresh Source = "renewal" // found in an entry that a background fetch now refreshes
	Failure Source = "failure" // found as a cached failure
	Miss    Source = "miss"    // fetched from the source
)

// Cache stores values of type V, which are shared: callers must not change them. Use [New].
type Cache[K comparable, V any] struct {
	cfg      Config[K, V]
	stopping context.Context //nolint:containedctx // cancels all fetches, because a fetch may have several callers
	stop     context.CancelCauseFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	entries *simplelru.LRU[K, *entry[V]]
	bytes   int64
	fetches map[K]*fetch[V]
	// generation counts the calls of ForgetFailures.
	generation int
}

// fetch is a running fetch, shared by all callers that wait for it.
type fetch[V any] struct {
	since      time.Time
	generation int
	progress   atomic.Pointer[error]
	// done closes when the result is set.
	done     chan struct{}
	value    V
	err      error
	panicked any
}

var (
	errTimeout  = errors.New("no answer in time")
	errStopping = errors.New("the program is stopping")
)

// New returns an empty cache.
func New[K comparable, V any](cfg Config[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{cfg: cfg, fetches: make(map[K]*fetch[V])}
	c.stopping, c.stop = context.WithCancelCause(context.Background())
	evicted := func(key K, e *entry[V]) { c.bytes -= c.sizeOf(key, e) }
	c.entries, _ = simplelru.NewLRU(math.MaxInt, evicted) // fails only for a size below 1
	return c
}

// Cached returns the value of key if [Cache.Get] would return it without waiting, and starts a refresh if one is due.
func (c *Cache[K, V]) Cached(ctx context.Context, key K) (Answer[V], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookUp(ctx, key, c.useEntry(key))
}

// Renew fetches the value of key, even if there is an entry. It returns the same errors as [Cache.Get].
func (c *Cache[K, V]) Renew(ctx context.Context, key K) (Answer[V], error) {
	c.mu.Lock()
	c.useEntry(key)
	f, err := c.joinFetch(ctx, key)
	c.mu.Unlock()
	if err != nil {
		return Answer[V]{Source: Miss}, err
	}
	return c.awaitFetch(ctx, f, nil)
}

// Get returns the value of key. It waits for a fetch only if no entry may be used, and no longer than StaleWait if
// there is a stale entry. It returns shortly before the deadline of ctx. It returns the error of Fetch if the fetch
// fails. If ctx is done before the fetch is complete, it returns the error that the fetch last recorded (see
// [Progress]), or else the error of ctx. The class of the error is fault.Exhausted if MaxFetches are running, and
// fault.Unavailable if the fetch timed out.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (Answer[V], error) {
	c.mu.Lock()
	e := c.useEntry(key)
	if answer, ok := c.lookUp(ctx, key, e); ok {
		c.mu.Unlock()
		return answer, nil
	}
	state := e.stateAt(c.cfg.Lifetime(key), time.Now())
	if state == failed {
		defer c.mu.Unlock()
		return Answer[V]{Source: Failure}, e.failure
	}
	f, err := c.joinFetch(ctx, key)
	c.mu.Unlock()
	switch {
	case err != nil && state == stale:
		return e.answer(Hit), nil
	case err != nil:
		return Answer[V]{Source: Miss}, err
	case state == stale:
		return c.awaitFetch(ctx, f, e)
	}
	return c.awaitFetch(ctx, f, nil)
}

// lookUp implements Cached for the entry e of key. c must be locked.
func (c *Cache[K, V]) lookUp(ctx context.Context, key K, e *entry[V]) (Answer[V], bool) {
	switch e.stateAt(c.cfg.Lifetime(key), time.Now()) {
	case fresh:
		return e.answer(Hit), true
	case aging:
		if c.startRefresh(ctx, key) {
			return e.answer(Refresh), true
		}
		return e.answer(Hit), true
	default:
		return Answer[V]{}, false
	}
}

// startRefresh starts a fetch of key in the background, and reports whether it did. It does not if a fetch of key or
// MaxFetches fetches are running. c must be locked.
func (c *Cache[K, V]) startRefresh(ctx context.Context, key K) bool {
	if _, running := c.fetches[key]; running {
		return false
	}
	_, err := c.joinFetch(ctx, key)
	return err == nil
}

// joinFetch returns the fetch of key and starts it if none runs. c must be locked.
func (c *Cache[K, V]) joinFetch(ctx context.Context, key K) (*fetch[V], error) {
	if f, ok := c.fetches[key]; ok {
		return f, nil
	}
	if c.stopping.Err() != nil {
		return nil, fault.New(fault.Unavailable, "%w", errStopping)
	}
	if len(c.fetches) >= c.cfg.MaxFetches {
		err := fault.New(fault.Exhausted, "%d answers are being fetched already, which is the limit", len(c.fetches))
		return nil, fault.WithRetryAfter(err, retryWhenFull)
	}
	f := &fetch[V]{since: time.Now(), generation: c.generation, done: make(chan struct{})}
	c.fetches[key] = f
	// The fetch belongs to the caller's trace, but ignores the caller's deadline because other callers wait for it
	// too.
	ctx = context.WithValue(context.WithoutCancel(ctx), progressKey{}, &f.progress)
	c.running.Go(func() { c.runFetch(ctx, key, f) })
	return f, nil
}

// runFetch fetches key, stores the result and wakes the callers.
func (c *Cache[K, V]) runFetch(ctx context.Context, key K, f *fetch[V]) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(c.stopping, func() { cancel(errStopping) })() //nolint:contextcheck // stops the fetch
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, c.cfg.FetchTimeout, errTimeout)
	defer cancelTimeout()
	func() {
		defer func() {
			if f.panicked = recover(); f.panicked != nil { // callers may recover: see awaitFetch
				f.err = fault.New(fault.Internal, "the fetch panicked: %v", f.panicked)
			}
		}()
		f.value, f.err = c.cfg.Fetch(ctx, key)
	}()
	if f.err != nil {
		f.err = c.explainError(f, context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.fetches, key)
	if f.err == nil || f.generation == c.generation { // the cause of an older failure may be gone
		c.storeResult(key, f.value, f.err)
	}
	close(f.done)
}

// explainError adds to the error of a fetch the error that the fetch last recorded, and the cause of its
// cancellation.
func (c *Cache[K, V]) explainError(f *fetch[V], cause error) error {
	err := f.err
	if last := f.progress.Load(); last != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (before that: %w)", err, *last)
	}
	switch {
	case errors.Is(cause, errTimeout):
		return fault.New(fault.Unavailable, "%w (after %v): %w", errTimeout, c.cfg.FetchTimeout, err)
	case errors.Is(cause, errStopping):
		return fault.New(fault.Unavailable, "%w: %w", errStopping, err)
	}
	return err
}

// awaitFetch waits for f until shortly before the deadline of ctx. If stale is not nil, awaitFetch returns the stale
// entry when f exceeds StaleWait or the deadline, or when the source is unavailable.
func (c *Cache[K, V]) awaitFetch(ctx context.Context, f *fetch[V], stale *entry[V]) (Answer[V], error) {
	none := Answer[V]{Source: Miss}
	early, cancel := retry.EarlyDeadline(ctx) // leaves time to report the cause
	defer cancel()
	var late <-chan time.Time
	if stale != nil {
		timer := time.NewTimer(c.cfg.StaleWait - time.Since(f.since))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-f.done:
	case <-late:
		return stale.answer(Refresh), nil
	case <-early.Done():
		if stale != nil && ctx.Err() == nil {
			return stale.answer(Refresh), nil
		}
		return none, f.timeoutError(early.Err())
	}
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case f.err == nil:
		return Answer[V]{Value: f.value, Source: Miss}, nil
	case stale != nil && isOutage(f.err):
		return stale.answer(Hit), nil
	}
	return none, f.err
}

// Run refreshes entries in use until ctx is done. Then it cancels all fetches and waits for their end. Later fetches
// fail.
func (c *Cache[K, V]) Run(ctx context.Context) error {
	c.keepRefreshed(ctx)
	c.mu.Lock()
	c.stop(errStopping)
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

// progressKey is the context key of a fetch's progress.
type progressKey struct{}

// Progress records that the fetch with the context ctx retries after err. A caller whose deadline passes before the
// fetch is complete gets err.
func Progress(ctx context.Context, err error) {
	if progress, ok := ctx.Value(progressKey{}).(*atomic.Pointer[error]); ok {
		progress.Store(&err)
	}
}

// timeoutError returns the error for a caller whose context was done before f was complete. Err is the context's
// error.
func (f *fetch[V]) timeoutError(err error) error {
	last := f.progress.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the answer was still being fetched: %w", err)
	}
	return fault.New(fault.Of(*last), "the answer was still being fetched, after this: %w", *last)
}
