package cache

import "time"

const (
	// recordBytes is what a record takes besides its key and its value: the list
	// element, the map's share and the record itself.
	recordBytes = 320
	// failureBytes is what a failure needs besides its text.
	failureBytes = 512
)

// failureSize is what a failure is taken to need: its text, and the parts that it was put
// together from.
func failureSize(err error) int64 { return failureBytes + 2*int64(len(err.Error())) }

// Peek returns the value that is kept for key, however old.
func (c *Cache[V]) Peek(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.records.Get(key)
	if !ok || !r.known {
		return value, false
	}
	return r.value, true
}

// Put keeps value for key as if it had been fetched now.
func (c *Cache[V]) Put(key string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(Query[V]{Key: key}, value, nil)
}

// note keeps what a fetch brought, and drops what was not used for longest if that
// is too much. c is locked.
func (c *Cache[V]) note(q Query[V], value V, err error) {
	r := new(record[V])
	if old, ok := c.records.Peek(q.Key); ok {
		*r = *old
		c.records.Remove(q.Key)
	}
	if err != nil {
		r.fail(err, q.Lifetime, time.Now())
	} else {
		r.succeed(value, time.Now())
	}
	c.records.Add(q.Key, r)
	c.bytes += c.size(q.Key, r)
	for c.bytes > c.cfg.MaxBytes {
		c.records.RemoveOldest()
	}
}

// size returns what a record takes.
func (c *Cache[V]) size(key string, r *record[V]) int64 {
	n := recordBytes + int64(len(key))
	if r.known {
		n += c.cfg.Size(r.value)
	}
	if r.failure != nil {
		n += failureSize(r.failure)
	}
	return n
}

// Bytes returns what is kept, as Size counts it.
func (c *Cache[V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// ForgetFailures drops all failures, also those of fetches that go on, because what
// causes them may have changed. What is known stays.
func (c *Cache[V]) ForgetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	for _, key := range c.records.Keys() {
		r, _ := c.records.Peek(key)
		if r.failure == nil {
			continue
		}
		if !r.known {
			c.records.Remove(key)
			continue
		}
		c.bytes -= failureSize(r.failure)
		r.failure = nil
	}
}
