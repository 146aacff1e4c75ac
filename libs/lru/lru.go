// SPDX-License-Identifier: Apache-2.0

// Package lru stores values up to a limit of bytes.
package lru

import (
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entryBytes is the additional memory of an entry, in bytes. It covers the list element, the struct, and a share of
// the map.
const entryBytes = 344

// Cache stores values up to a limit of bytes. It evicts the least recently used values first. It is not safe for
// concurrent use. [New] creates a Cache.
type Cache[K comparable, V any] struct {
	max, bytes int64
	sizeOf     func(K, V) int64
	entries    *simplelru.LRU[K, entry[V]]
}

type entry[V any] struct {
	value V
	bytes int64
}

// New returns an empty cache for at most maxBytes. The function sizeOf returns the size of a key and its value in
// memory, in bytes.
func New[K comparable, V any](maxBytes int64, sizeOf func(K, V) int64) *Cache[K, V] {
	l := &Cache[K, V]{max: maxBytes, sizeOf: sizeOf}
	evicted := func(_ K, e entry[V]) { l.bytes -= e.bytes }
	l.entries, _ = simplelru.NewLRU(math.MaxInt, evicted) // fails only for a size below 1
	return l
}

// Get returns the value of a key, and makes the key the most recently used.
func (l *Cache[K, V]) Get(key K) (V, bool) {
	s, ok := l.entries.Get(key)
	return s.value, ok
}

// Peek returns the value of a key without recording a use, so that the order of eviction does not change.
func (l *Cache[K, V]) Peek(key K) (V, bool) {
	s, ok := l.entries.Peek(key)
	return s.value, ok
}

// Put stores or replaces the value of a key. A value larger than the limit is not stored and evicts nothing.
func (l *Cache[K, V]) Put(key K, value V) {
	l.entries.Remove(key)
	size := entryBytes + l.sizeOf(key, value)
	if size > l.max {
		return
	}
	l.entries.Add(key, entry[V]{value, size})
	for l.bytes += size; l.bytes > l.max; {
		l.entries.RemoveOldest()
	}
}

// Keys returns the keys, from the least to the most recently used.
func (l *Cache[K, V]) Keys() []K { return l.entries.Keys() }

// Bytes returns the memory that all entries use, according to sizeOf and entryBytes.
func (l *Cache[K, V]) Bytes() int64 { return l.bytes }
