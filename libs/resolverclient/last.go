// SPDX-License-Identifier: Apache-2.0

package resolverclient

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lru"
)

const (
	// maxLastAge is the maximum age of a stored answer that we return while the image-resolver is unavailable.
	maxLastAge = time.Hour
	// maxLastWait is the maximum wait for the image-resolver if there is a stored answer. If the caller has a deadline,
	// the wait is also at most half of the time until this deadline.
	maxLastWait = 3 * time.Second
	// retryInterval is the interval between queries for a key while the image-resolver or the registry is unavailable.
	retryInterval = 5 * time.Second
)

// lastAnswers stores the image-resolver's answers, and returns them while the image-resolver is unavailable. While the
// image-resolver is available, each call queries it. A query takes only about a millisecond, because the image-resolver
// has a cache.
type lastAnswers[K comparable, V any] struct {
	ask        func(ctx context.Context, key K) (V, error)
	hangs      func(context.Context) bool
	countStale func(context.Context)

	mu      sync.Mutex
	answers *lru.Cache[K, *lastAnswer[V]]
}

type lastAnswer[V any] struct {
	value V
	at    time.Time
	// retryAt is the earliest time of the next query after a failed query. It is zero if no query has failed since this
	// answer was stored. Each key has its own retryAt, because queries for other keys may still succeed. For example, the
	// image-resolver also returns Unavailable if only this key's registry is unavailable.
	retryAt time.Time
}

// newLastAnswers returns an empty lastAnswers. The function ask queries the image-resolver, and its errors have a
// fault.Class. The function hangs reports whether the image-resolver currently leaves calls unanswered. While it
// returns true, lastAnswers does not query keys with a stored answer. The counter stale counts the uses of stored
// answers, and kind is the value of the counter's label.
func newLastAnswers[K comparable, V any](
	ask func(context.Context, K) (V, error), hangs func(context.Context) bool, sizeOf func(K, V) int64,
	stale metric.Int64Counter, kind string,
) *lastAnswers[K, V] {
	ofKind := metric.WithAttributes(attribute.String("kind", kind))
	return &lastAnswers[K, V]{
		ask:        ask,
		hangs:      hangs,
		countStale: func(ctx context.Context) { stale.Add(ctx, 1, ofKind) },
		answers:    lru.New(maxBytes, func(key K, a *lastAnswer[V]) int64 { return sizeOf(key, a.value) }),
	}
}

// get returns the image-resolver's current answer, or the stored answer while the image-resolver is unavailable.
// Without a stored answer, get returns the error of a failed query. With a stored answer, get returns an error only if
// ctx is done, or if the query fails for another reason, such as an unknown image.
func (l *lastAnswers[K, V]) get(ctx context.Context, key K) (V, error) {
	last := l.known(key)
	if last == nil {
		return l.query(ctx, key)
	}
	if !l.claimQuery(last) || l.hangs(ctx) { // order matters: hangs may wait for a name server
		l.countStale(ctx)
		return last.value, nil
	}
	wait := maxLastWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	value, err := l.query(limited, key)
	class := fault.Of(err)
	if err == nil || ctx.Err() != nil || (class != fault.Unavailable && class != fault.DeadlineExceeded) {
		return value, err
	}
	l.mu.Lock()
	last.retryAt = time.Now().Add(retryInterval)
	l.mu.Unlock()
	l.countStale(ctx)
	return last.value, nil
}

// known returns the stored answer for a key. It returns nil if no answer is stored or the answer is older than
// maxLastAge.
func (l *lastAnswers[K, V]) known(key K) *lastAnswer[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.answers.Get(key); ok && time.Since(last.at) < maxLastAge {
		return last
	}
	return nil
}

// claimQuery reports whether the caller should query the image-resolver for a key. It returns true as long as no query
// has failed. After a failed query, it returns true to one caller per retryInterval, which repeats the query. It
// returns false to all other callers, which use the stored answer immediately.
func (l *lastAnswers[K, V]) claimQuery(last *lastAnswer[V]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(last.retryAt) {
		return false
	}
	if !last.retryAt.IsZero() {
		last.retryAt = now.Add(retryInterval)
	}
	return true
}

// query queries the image-resolver, and stores the answer for later outages.
func (l *lastAnswers[K, V]) query(ctx context.Context, key K) (V, error) {
	value, err := l.ask(ctx, key)
	if err != nil {
		return value, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers.Put(key, &lastAnswer[V]{value: value, at: time.Now()})
	return value, nil
}
