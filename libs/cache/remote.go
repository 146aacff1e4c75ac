// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Remote is a cache of what another service answers, so that work on what is in use neither
// waits for that service nor fails while it is away.
type Remote[K comparable, V any] struct {
	cache *Cache[K, V]
	fetch func(ctx context.Context, key K) (V, error)
	stale func(context.Context)
}

// RemoteConfig is what a Remote works with.
type RemoteConfig[K comparable, V any] struct {
	// Fetch asks the other service. Its errors have fault classes.
	Fetch func(ctx context.Context, key K) (V, error)
	// Size and MaxBytes are as in [Config].
	Size     func(K, V) int64
	MaxBytes int64
	// Stale is called for each value that is returned although its time is over, since the other
	// service does not answer; nil for nothing.
	Stale func(context.Context)
}

// StaleCounter returns a function that counts stale values of a kind.
func StaleCounter(meters metric.MeterProvider, kind string) (func(context.Context), error) {
	counter, err := meters.Meter("cache").Int64Counter("fn.stale.answers",
		metric.WithDescription("Old answers that were used because the image-resolver did not answer."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of the cache: %w", err)
	}
	of := metric.WithAttributes(attribute.String("kind", kind))
	return func(ctx context.Context) { counter.Add(ctx, 1, of) }, nil
}

// remoteLifetime is short in comparison with the minutes after which the image-resolver looks
// at tags again.
var remoteLifetime = Lifetime{
	Refresh: 10 * time.Second,
	// What was not used for longer waits for a new answer, since much may have changed.
	TTL: time.Minute,
	// Running pods do not depend on the other service.
	Stale:          time.Hour,
	Failure:        10 * time.Second,
	RemoteFailures: true,
}

const (
	// remoteTimeout is as long as the image-resolver may take, and so short that a service
	// that is silent is known to be away before the TTL of entries in use is over.
	remoteTimeout   = 30 * time.Second
	remoteStaleWait = 3 * time.Second
	// maxRemoteRefreshes leaves most fetches to callers that wait for them.
	maxRemoteRefreshes = 256
	maxRemoteFetches   = 10_000
)

// NewRemote returns an empty cache. Its fetches end with [Remote.Run].
func NewRemote[K comparable, V any](cfg RemoteConfig[K, V]) *Remote[K, V] {
	return &Remote[K, V]{fetch: cfg.Fetch, stale: cfg.Stale, cache: New(Config[K, V]{
		MaxBytes: cfg.MaxBytes, Size: cfg.Size, MaxFetches: maxRemoteFetches, MaxRefreshes: maxRemoteRefreshes,
		FetchTimeout: remoteTimeout, StaleWait: remoteStaleWait,
	})}
}

// Cached returns a value that [Remote.Get] would return without waiting. When it is due for
// that, it is refreshed in the background.
func (r *Remote[K, V]) Cached(key K) (V, bool) {
	answer, ok := r.cache.Cached(context.Background(), r.query(key))
	r.count(context.Background(), answer)
	return answer.Value, ok
}

// count counts a stale answer.
func (r *Remote[K, V]) count(ctx context.Context, answer Answer[V]) {
	if r.stale != nil && answer.Age >= remoteLifetime.TTL {
		r.stale(ctx)
	}
}

// Get returns a value. It waits for the other service unless that answered a short time ago, or
// is away. Errors are those of Fetch, and otherwise as for [Cache.Get].
func (r *Remote[K, V]) Get(ctx context.Context, key K) (V, error) {
	answer, err := r.cache.Get(ctx, r.query(key))
	r.count(ctx, answer)
	return answer.Value, err
}

func (r *Remote[K, V]) query(key K) Query[K, V] {
	return Query[K, V]{
		Key: key, Lifetime: remoteLifetime, CallerDeadline: true,
		Fetch: func(ctx context.Context) (V, error) { return r.fetch(ctx, key) },
	}
}

// Run waits for ctx to end, then ends all fetches.
func (r *Remote[K, V]) Run(ctx context.Context) error { return r.cache.Run(ctx) }
