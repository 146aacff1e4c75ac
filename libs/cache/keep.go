// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Keeping is which entries are refreshed while they are in use, also if they are not asked for just then: the next
// caller after a pause does not wait for the source either.
type Keeping struct {
	// Max is how many entries are kept; zero keeps none. Of more, those asked for last are.
	Max int
	// For is how long after it was asked for an entry is in use.
	For time.Duration
	// Every is the time between two searches for entries to refresh; zero for none. Each search spreads its fetches over
	// this time.
	Every time.Duration
}

// kept is an entry that is in use.
type kept[K comparable, V any] struct {
	query Query[K, V]
	asked time.Time
}

// newKept returns an empty list of entries in use; nil if none are kept.
func newKept[K comparable, V any](k Keeping) *simplelru.LRU[K, kept[K, V]] {
	if k.Max <= 0 || k.Every <= 0 {
		return nil
	}
	list, _ := simplelru.NewLRU[K, kept[K, V]](k.Max, nil) // the only error is a size below one
	return list
}

// use records that an entry is asked for. c is locked.
func (c *Cache[K, V]) use(q Query[K, V], now time.Time) {
	if c.kept == nil || !q.Keep || q.Lifetime.TTL == 0 {
		return
	}
	q.Renew = false
	c.kept.Add(q.Key, kept[K, V]{query: q, asked: now})
}

// keep refreshes entries in use until ctx ends. Programs that started together do so at different times.
func (c *Cache[K, V]) keep(ctx context.Context) {
	if c.kept == nil {
		<-ctx.Done()
		return
	}
	for wait := rand.N(c.cfg.Keeping.Every); retry.Sleep(ctx, wait); { //nolint:gosec // no secret
		due := c.due(time.Now())
		wait = c.cfg.Keeping.Every / time.Duration(len(due)+1)
		for _, q := range due {
			c.mu.Lock()
			c.refresh(ctx, q)
			c.mu.Unlock()
			if !retry.Sleep(ctx, wait) {
				return
			}
		}
	}
}

// due returns the queries of entries in use whose time will soon be over. It forgets entries that are out of use, or
// that their source refuses.
func (c *Cache[K, V]) due(now time.Time) []Query[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []Query[K, V]
	for _, key := range c.kept.Keys() {
		one, _ := c.kept.Peek(key)
		e, ok := c.entries.Peek(key)
		_, fetching := c.fetches[key]
		switch {
		case fetching: // its outcome decides
		case now.Sub(one.asked) >= c.cfg.Keeping.For, !ok || !e.known, e.failure != nil && !isOutage(e.failure):
			c.kept.Remove(key)
		case e.failure != nil && now.Before(e.retryAt):
		case now.Sub(e.fetchedAt)+3*c.cfg.Keeping.Every >= one.query.Lifetime.TTL:
			due = append(due, one.query)
		}
	}
	return due
}
