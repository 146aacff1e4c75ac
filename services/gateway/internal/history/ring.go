// SPDX-License-Identifier: Apache-2.0

package history

import "iter"

// ring keeps the last values, up to max. It grows as it is filled.
type ring[T any] struct {
	max    int
	next   int // where the next value goes, once the ring is full
	values []T
}

// add keeps a value, in place of the oldest if the ring is full.
func (r *ring[T]) add(value T) {
	if len(r.values) < r.max {
		r.values = append(r.values, value)
		return
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % r.max
}

// newest returns the values, the newest first.
func (r *ring[T]) newest() iter.Seq[T] {
	return func(yield func(T) bool) {
		n := len(r.values)
		for i := range n {
			if !yield(r.values[(r.next+n-1-i)%n]) {
				return
			}
		}
	}
}
