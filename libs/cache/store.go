// SPDX-License-Identifier: Apache-2.0

package cache

import "time"

const (
	// entryBytes is what an entry takes besides its key and its value: the list
	// element, the map's share and the entry itself.
	entryBytes = 320
	// failureBytes is what a failure needs besides its text.
	failureBytes = 512
)

// failureSize is what a failure is taken to need: its text, and the parts that it was put
// together from.
func failureSize(err error) int64 { return failureBytes + 2*int64(len(err.Error())) }

// Peek returns the value of an entry, however old.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	return e.value, e.known
}

// Put stores value for key as if it had been fetched now.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(Query[K, V]{Key: key}, value, nil)
}

// store stores what a fetch brought, and evicts the entries that were not used for longest if
// that is too much. A value that is larger than the cache is not stored, and evicts nothing.
// c is locked.
func (c *Cache[K, V]) store(q Query[K, V], value V, err error) {
	e := new(entry[V])
	if old, ok := c.entries.Peek(q.Key); ok {
		*e = *old
		c.entries.Remove(q.Key)
	}
	switch {
	case err == nil:
		e.succeed(value, time.Now())
	case q.Lifetime.RemoteFailures && (!e.known || !isOutage(err)):
		return
	default:
		e.fail(err, q.Lifetime, time.Now())
	}
	size := c.size(q.Key, e)
	if size > c.cfg.MaxBytes {
		return
	}
	c.entries.Add(q.Key, e)
	c.bytes += size
	for c.bytes > c.cfg.MaxBytes {
		c.entries.RemoveOldest()
	}
}

// size returns what an entry takes.
func (c *Cache[K, V]) size(key K, e *entry[V]) int64 {
	n := entryBytes + c.cfg.Size(key, e.value)
	if e.failure != nil {
		n += failureSize(e.failure)
	}
	return n
}

// Bytes returns what all entries take.
func (c *Cache[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// ForgetFailures removes all failures, also those of running fetches, because what
// causes them may have changed. Values stay.
func (c *Cache[K, V]) ForgetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	for _, key := range c.entries.Keys() {
		e, _ := c.entries.Peek(key)
		if e.failure == nil {
			continue
		}
		if !e.known {
			c.entries.Remove(key)
			continue
		}
		c.bytes -= failureSize(e.failure)
		e.failure = nil
	}
}
