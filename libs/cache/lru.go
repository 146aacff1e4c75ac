// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entryBytes is the memory of an entry in addition to its key and value: its list element, its share of the map and
// the struct.
const entryBytes = 344

// LRU stores values up to a limit of bytes. It evicts the least recently used values first. It is not safe for
// concurrent use. Use [NewLRU].
type LRU[K comparable, V any] struct {
	max, bytes int64
	sizeOf     func(K, V) int64
	entries    *simplelru.LRU[K, lruEntry[V]]
}

type lruEntry[V any] struct {
	value V
	bytes int64
}

// NewLRU returns an empty LRU for at most maxBytes. The function sizeOf returns the memory that a key and its value
// need, in bytes.
func NewLRU[K comparable, V any](maxBytes int64, sizeOf func(K, V) int64) *LRU[K, V] {
	l := &LRU[K, V]{max: maxBytes, sizeOf: sizeOf}
	evicted := func(_ K, e lruEntry[V]) { l.bytes -= e.bytes }
	l.entries, _ = simplelru.NewLRU(math.MaxInt, evicted) // fails only for a size below 1
	return l
}

// Get returns the value of a key, and records its use.
func (l *LRU[K, V]) Get(key K) (V, bool) {
	s, ok := l.entries.Get(key)
	return s.value, ok
}

// Peek returns the value of a key without recording a use, so that the order of eviction does not change.
func (l *LRU[K, V]) Peek(key K) (V, bool) {
	s, ok := l.entries.Peek(key)
	return s.value, ok
}

// Put stores or replaces the value of a key. A value larger than the limit is not stored and evicts nothing.
func (l *LRU[K, V]) Put(key K, value V) {
	l.entries.Remove(key)
	size := entryBytes + l.sizeOf(key, value)
	if size > l.max {
		return
	}
	l.entries.Add(key, lruEntry[V]{value, size})
	for l.bytes += size; l.bytes > l.max; {
		l.entries.RemoveOldest()
	}
}

// Keys returns the keys, the least recently used first.
func (l *LRU[K, V]) Keys() []K { return l.entries.Keys() }

// Bytes returns the memory that all entries use, as counted by the function sizeOf of NewLRU.
func (l *LRU[K, V]) Bytes() int64 { return l.bytes }
