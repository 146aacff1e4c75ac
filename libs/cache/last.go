// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxLastAge is the maximum age of an answer that Last returns while the service is unavailable.
	maxLastAge = time.Hour
	// maxLastWait limits the wait for the service if there is an earlier answer. A caller also waits at most for half
	// of the time until its deadline.
	maxLastWait = 3 * time.Second
	// retryInterval is the interval between two queries while the service is unavailable.
	retryInterval = 5 * time.Second
)

// Last queries a service for each call, and returns the service's last answers while the service is unavailable. It
// is for services that cache their answers themselves, such as the image-resolver, which answers within a
// millisecond. Use [NewLast].
type Last[K comparable, V any] struct {
	cfg LastConfig[K, V]

	mu      sync.Mutex
	answers *simplelru.LRU[K, lastAnswer[V]]
	bytes   int64
	// retryAt is the time of the next query to an unavailable service. It is zero if the service is available.
	retryAt time.Time
}

// LastConfig configures a Last. Ask, Size and MaxBytes are required.
type LastConfig[K comparable, V any] struct {
	// Ask queries the service. Its errors have fault classes.
	Ask func(ctx context.Context, key K) (V, error)
	// MaxBytes limits the sum of the answers' sizes, as counted by Size.
	MaxBytes int64
	// Size returns the memory that a key and its answer need, in bytes.
	Size func(K, V) int64
	// Stale is called whenever Get returns an earlier answer because the service is unavailable. It may be nil.
	Stale func(context.Context)
}

type lastAnswer[V any] struct {
	value V
	at    time.Time
}

// NewLast returns a Last without answers.
func NewLast[K comparable, V any](cfg LastConfig[K, V]) *Last[K, V] {
	l := &Last[K, V]{cfg: cfg}
	evicted := func(key K, a lastAnswer[V]) { l.bytes -= l.sizeOf(key, a.value) }
	l.answers, _ = simplelru.NewLRU(math.MaxInt, evicted) // fails only for a size below 1
	return l
}

// StaleCounter returns a function for LastConfig.Stale that counts the calls in a metric, under the given kind.
func StaleCounter(meters metric.MeterProvider, kind string) (func(context.Context), error) {
	counter, err := meters.Meter("cache").Int64Counter("fn.stale.answers",
		metric.WithDescription(
			"Old answers that were used because the image-resolver did not answer: tags, digests or images. "+
				"Labels: kind."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of the cache: %w", err)
	}
	ofKind := metric.WithAttributes(attribute.String("kind", kind))
	return func(ctx context.Context) { counter.Add(ctx, 1, ofKind) }, nil
}

// Get returns the answer of the service, or the last answer if the service is unavailable. Answers are shared, so
// callers must not change them. Get returns errors of Ask and of ctx.
func (l *Last[K, V]) Get(ctx context.Context, key K) (V, error) {
	last, known := l.Known(key)
	if !known {
		return l.askService(ctx, key)
	}
	if !l.claimQuestion() {
		l.countStale(ctx)
		return last, nil
	}
	limited, cancel := context.WithTimeout(ctx, lastWait(ctx))
	defer cancel()
	value, err := l.askService(limited, key)
	if class := fault.Of(err); err == nil || (class != fault.Unavailable && class != fault.DeadlineExceeded) {
		return value, err
	}
	if ctx.Err() != nil {
		return value, err
	}
	l.mu.Lock()
	l.retryAt = time.Now().Add(retryInterval)
	l.mu.Unlock()
	l.countStale(ctx)
	return last, nil
}

// lastWait returns the timeout of a query whose caller can use an earlier answer instead.
func lastWait(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(maxLastWait, time.Until(deadline)/2)
	}
	return maxLastWait
}

// Known returns the last answer, unless it is too old.
func (l *Last[K, V]) Known(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.answers.Get(key)
	return a.value, ok && time.Since(a.at) < maxLastAge
}

// claimQuestion reports whether the caller should query the service. While the service is unavailable, it returns
// true for a single caller per retryInterval.
func (l *Last[K, V]) claimQuestion() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retryAt.IsZero() {
		return true
	}
	now := time.Now()
	if now.Before(l.retryAt) {
		return false
	}
	l.retryAt = now.Add(retryInterval)
	return true
}

// askService queries the service, and stores its answer.
func (l *Last[K, V]) askService(ctx context.Context, key K) (V, error) {
	value, err := l.cfg.Ask(ctx, key)
	if err != nil {
		return value, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retryAt = time.Time{}
	l.answers.Remove(key)
	if size := l.sizeOf(key, value); size <= l.cfg.MaxBytes {
		l.answers.Add(key, lastAnswer[V]{value, time.Now()})
		l.bytes += size
	}
	for l.bytes > l.cfg.MaxBytes {
		l.answers.RemoveOldest()
	}
	return value, nil
}

func (l *Last[K, V]) sizeOf(key K, value V) int64 { return entryBytes + l.cfg.Size(key, value) }

func (l *Last[K, V]) countStale(ctx context.Context) {
	if l.cfg.Stale != nil {
		l.cfg.Stale(ctx)
	}
}
