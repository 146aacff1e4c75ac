// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"
)

// Remote is a cache of what another service answers, so that work on what is in use neither
// waits for that service nor fails while it is away.
type Remote[K comparable, V any] struct {
	cache *Cache[K, V]
	fetch func(ctx context.Context, key K) (V, error)
}

// RemoteConfig is what a Remote works with.
type RemoteConfig[K comparable, V any] struct {
	// Fetch asks the other service. Its errors have fault classes.
	Fetch func(ctx context.Context, key K) (V, error)
	// Size and MaxBytes are as in [Config].
	Size     func(K, V) int64
	MaxBytes int64
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
	return &Remote[K, V]{fetch: cfg.Fetch, cache: New(Config[K, V]{
		MaxBytes: cfg.MaxBytes, Size: cfg.Size, MaxFetches: maxRemoteFetches, MaxRefreshes: maxRemoteRefreshes,
		FetchTimeout: remoteTimeout, StaleWait: remoteStaleWait,
	})}
}

// Cached returns a value that [Remote.Get] would return without waiting. When it is due for
// that, it is refreshed in the background.
func (r *Remote[K, V]) Cached(key K) (V, bool) {
	answer, ok := r.cache.Cached(context.Background(), r.query(key))
	return answer.Value, ok
}

// Get returns a value. It waits for the other service unless that answered a short time ago, or
// is away. Errors are those of Fetch, and otherwise as for [Cache.Get].
func (r *Remote[K, V]) Get(ctx context.Context, key K) (V, error) {
	answer, err := r.cache.Get(ctx, r.query(key))
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
