// SPDX-License-Identifier: Apache-2.0

// Package cache stores values from a slow source, such as a registry, up to a limit of bytes. Callers that need the
// same missing value share a single fetch. Entries in use are refreshed before they expire.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lru"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// retryWhenFull is the suggested delay before a retry if MaxFetches fetches were running.
	retryWhenFull = time.Second
	// keepInterval is the interval between two searches for entries that need a refresh. The refreshes are spread over the
	// interval, so that the source does not receive all requests at once.
	keepInterval = time.Minute
)

// Config configures a Cache. All fields except KeepFor and MaxKept are required.
type Config[K comparable, V any] struct {
	// Fetch gets the value of a key from the source. Its errors must have classes of package fault, because the class
	// determines whether the cache may return a stale value instead.
	Fetch func(ctx context.Context, key K) (V, error)
	// Lifetime returns the time for which the cached value of a key may be used.
	Lifetime func(K) Lifetime
	// MaxBytes limits the memory of all entries, in bytes as counted by Size.
	MaxBytes int64
	// Size returns the memory that a key and its value need, in bytes.
	Size func(K, V) int64
	// MaxFetches is the maximum number of concurrent fetches. Further fetches fail with class fault.Exhausted.
	MaxFetches int
	// FetchTimeout is the maximum duration of a fetch. A fetch continues after its callers have given up, so that the
	// next caller finds the value.
	FetchTimeout time.Duration
	// StaleWait is the maximum time that a caller waits for a fetch if the cache contains a stale value. After this
	// time, the caller gets the stale value.
	StaleWait time.Duration
	// KeepFor is the time for which an entry is refreshed in the background after its last use, so that callers need not
	// wait for the source. If KeepFor is zero, an entry is refreshed only when it is used.
	KeepFor time.Duration
	// MaxKept is the maximum number of entries that are refreshed in the background. The most recently used entries
	// have priority.
	MaxKept int
	// Log receives the panics of fetches.
	Log *slog.Logger
}

// Answer is a value that the cache returns, with its origin.
type Answer[V any] struct {
	Value V
	// Source is the origin of the value, for example an entry of the cache.
	Source Source
}

// Source is the origin of an [Answer], for example an entry of the cache or a new fetch. Metrics use it as a label.
type Source string

// Possible origins of an answer of the cache.
const (
	Hit     Source = "hit"     // found in the cache
	Refresh Source = "renewal" // found in the cache, and now being refreshed
	Failure Source = "failure" // found in the cache, as the error of a failed fetch
	Miss    Source = "miss"    // fetched from the source
)

// Cache stores values of type V. Callers share the values and must not change them. Create a Cache with [New].
type Cache[K comparable, V any] struct {
	cfg      Config[K, V]
	stopping context.Context //nolint:containedctx // cancels all fetches, because a fetch may have several callers
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	entries *lru.Cache[K, *entry[V]]
	fetches map[K]*fetch[V]
	// generation is the number of calls of ForgetFailures. If it changes during a fetch, the result of the fetch may be
	// outdated. The cache then ignores a failure, and stores a value only as outdated.
	generation int
}

// fetch is a running request to the source for the value of a key. All callers that need the value share it.
type fetch[V any] struct {
	since      time.Time
	generation int
	progress   atomic.Pointer[error]
	// done is closed when the result of the fetch is set.
	done  chan struct{}
	value V
	err   error
}

var (
	errTimeout  = errors.New("no answer in time")
	errStopping = errors.New("the program is stopping")
)

// New returns an empty cache.
func New[K comparable, V any](cfg Config[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{cfg: cfg, fetches: make(map[K]*fetch[V])}
	c.stopping, c.stop = context.WithCancel(context.Background())
	c.entries = lru.New(cfg.MaxBytes, func(key K, e *entry[V]) int64 {
		n := cfg.Size(key, e.value)
		if e.failure != nil {
			n += failureBytes + 2*int64(len(e.failure.Error())) // texts of the error and of the errors that it wraps
		}
		return n
	})
	return c
}

// Get returns the value of key, and fetches it if necessary. If the cache contains a stale value, Get returns this
// value when the source is unavailable or needs longer than StaleWait. Otherwise, Get returns the error of a failed
// fetch. The class of this error is fault.Exhausted if MaxFetches other fetches are running, and fault.Unavailable if
// the fetch exceeded FetchTimeout.
//
// Get returns shortly before the deadline of ctx. If there is no value by then, Get returns the error that the fetch
// last passed to [Progress]. Without such an error, Get returns the error of ctx.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (Answer[V], error) {
	c.mu.Lock()
	e := c.useEntry(key)
	state := e.stateAt(c.cfg.Lifetime(key), time.Now())
	switch state {
	case fresh:
		defer c.mu.Unlock()
		return e.answer(Hit), nil
	case failed:
		defer c.mu.Unlock()
		return Answer[V]{Source: Failure}, e.failure
	case absent, stale, aging:
	}
	_, running := c.fetches[key]
	f, err := c.joinFetch(ctx, key)
	c.mu.Unlock()
	switch {
	case state == aging && err == nil && !running:
		return e.answer(Refresh), nil
	case state == aging, state == stale && err != nil:
		return e.answer(Hit), nil
	case err != nil:
		return Answer[V]{Source: Miss}, err
	case state == stale:
		return c.awaitFetch(ctx, f, e)
	}
	return c.awaitFetch(ctx, f, nil)
}

// Renew fetches the value of key even if the cache contains a value. It returns the same errors as [Cache.Get].
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

// Peek returns the cached value of a key, even if it has expired. It never fetches.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries.Get(key)
	if !ok {
		return value, false
	}
	return e.value, e.known
}

// Put stores value for key as if it had been fetched now.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeResult(key, value, nil, c.generation)
}

// Bytes returns the memory that all entries use, as counted by Config.Size.
func (c *Cache[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Bytes()
}

// ForgetFailures removes all cached failures, and prevents running fetches from caching their failures. Callers use it
// after they have removed a possible cause of the failures. Cached values remain, but are refreshed at their next use,
// because the source may now return other values.
func (c *Cache[K, V]) ForgetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
}

// entryOf returns the entry of a key, or a zero entry if there is none. If the entry's fetch began before the last call
// of ForgetFailures, the result is a copy that contains no failure, and whose value is marked as outdated. The caller
// must hold c.mu.
func (c *Cache[K, V]) entryOf(key K) *entry[V] {
	e, ok := c.entries.Peek(key)
	switch {
	case !ok:
		return new(entry[V])
	case e.generation != c.generation:
		return &entry[V]{value: e.value, known: e.known, outdated: true, fetchedAt: e.fetchedAt, usedAt: e.usedAt}
	}
	return e
}

// useEntry returns the entry of a key like entryOf, and records that it is used now. c must be locked.
func (c *Cache[K, V]) useEntry(key K) *entry[V] {
	if e, ok := c.entries.Get(key); ok {
		e.usedAt = time.Now()
	}
	return c.entryOf(key)
}

// storeResult stores the value or the error of a fetch. The argument generation is the number of calls of
// ForgetFailures before the fetch began. The caller must hold c.mu.
func (c *Cache[K, V]) storeResult(key K, value V, err error, generation int) {
	now := time.Now()
	e := *c.entryOf(key) // a copy, because callers may still read the old entry
	if e.usedAt.IsZero() {
		e.usedAt = now
	}
	if err == nil {
		e = entry[V]{value: value, known: true, fetchedAt: now, usedAt: e.usedAt}
	} else {
		e.recordFailure(err, c.cfg.Lifetime(key), now)
	}
	e.generation = generation
	c.entries.Put(key, &e)
}

// joinFetch returns the running fetch of key. If none is running, it starts a fetch. c must be locked.
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
	// The context keeps the caller's trace, but not its deadline, because other callers may wait for the same fetch.
	ctx = context.WithValue(context.WithoutCancel(ctx), progressKey{}, &f.progress)
	c.running.Go(func() { c.runFetch(ctx, key, f) })
	return f, nil
}

// runFetch fetches the value of key, stores the result and wakes the callers that wait for it.
func (c *Cache[K, V]) runFetch(ctx context.Context, key K, f *fetch[V]) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.FetchTimeout, errTimeout)
	defer cancel()
	defer context.AfterFunc(c.stopping, cancel)() //nolint:contextcheck // stops the fetch
	func() {
		defer func() {
			if p := recover(); p != nil {
				c.cfg.Log.ErrorContext(ctx, "fetch panicked", "panic", p, "stack", string(debug.Stack()))
				f.err = fault.New(fault.Internal, "defect in the fetch: the program's log has the details")
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
	c.storeResult(key, f.value, f.err, f.generation)
	close(f.done)
}

// explainError explains why a fetch failed. After a missed deadline, it adds the error that the fetch last passed to
// [Progress]. If FetchTimeout or the end of the program stopped the fetch, it adds this reason.
func (c *Cache[K, V]) explainError(f *fetch[V], cause error) error {
	err := f.err
	if last := f.progress.Load(); last != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (before that: %w)", err, *last)
	}
	switch {
	case errors.Is(cause, errTimeout):
		return fault.New(fault.Unavailable, "%w (after %v): %w", errTimeout, c.cfg.FetchTimeout, err)
	case cause != nil: // only the end of the program cancels fetches
		return fault.New(fault.Unavailable, "%w: %w", errStopping, err)
	}
	return err
}

// awaitFetch waits for a fetch until shortly before the deadline of ctx. If stale is not nil, awaitFetch returns this
// entry in three cases: StaleWait has passed, the deadline is near, or the source is unavailable.
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
	case f.err == nil:
		return Answer[V]{Value: f.value, Source: Miss}, nil
	case stale != nil && isOutage(f.err):
		return stale.answer(Hit), nil
	}
	return none, f.err
}

// Run refreshes recently used entries in the background until ctx is done. It then cancels all fetches and waits until
// they have stopped. Later fetches fail.
func (c *Cache[K, V]) Run(ctx context.Context) error {
	c.keepRefreshed(ctx)
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

// keepRefreshed refreshes recently used entries until ctx is done. Its first wait is random, so that programs that
// started together do not send their refreshes at the same time.
func (c *Cache[K, V]) keepRefreshed(ctx context.Context) {
	for wait := rand.N(keepInterval); retry.Sleep(ctx, wait); { //nolint:gosec // no secret
		due := c.dueKeys(time.Now())
		wait = keepInterval / time.Duration(len(due)+1)
		for _, key := range due {
			c.mu.Lock()
			_, _ = c.joinFetch(ctx, key) // if too many fetches are running, a later search finds the key again
			c.mu.Unlock()
			if !retry.Sleep(ctx, wait) {
				return
			}
		}
	}
}

// dueKeys returns the keys of the entries to refresh in the background. It considers the MaxKept most recently used
// entries. An entry is due if it is outdated or older than half of its TTL, and if a retry is permitted.
func (c *Cache[K, V]) dueKeys(now time.Time) (due []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.DeleteFunc(c.entries.Keys(), func(key K) bool {
		return !c.entryOf(key).inUse(c.cfg.Lifetime(key), c.cfg.KeepFor, now)
	})
	slices.SortFunc(keys, func(a, b K) int { return c.entryOf(b).usedAt.Compare(c.entryOf(a).usedAt) })
	for _, key := range keys[:min(len(keys), c.cfg.MaxKept)] {
		e := c.entryOf(key)
		if (e.outdated || now.Sub(e.fetchedAt) >= c.cfg.Lifetime(key).TTL/2) && !now.Before(e.retryAt) {
			due = append(due, key)
		}
	}
	return due
}

// progressKey is the context key under which [Progress] finds the running fetch.
type progressKey struct{}

// Progress records err as the reason why the fetch with the context ctx is delayed. Fetch functions call it before they
// retry. If a caller's deadline passes during the fetch, the caller receives this error.
func Progress(ctx context.Context, err error) {
	if progress, ok := ctx.Value(progressKey{}).(*atomic.Pointer[error]); ok {
		progress.Store(&err)
	}
}

// timeoutError returns the error for a caller whose context ended during the fetch. The argument err is the error of
// the context. After a deadline, the last error from [Progress] replaces err, if there is any.
func (f *fetch[V]) timeoutError(err error) error {
	last := f.progress.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the answer was still being fetched: %w", err)
	}
	return fault.New(fault.Of(*last), "the answer was still being fetched, after this: %w", *last)
}
