// SPDX-License-Identifier: Apache-2.0

package evalhistory

import "iter"

// ring stores the newest values, up to max. It allocates memory only for the stored values.
type ring[T any] struct {
	max    int
	next   int // index of the oldest value, which add replaces in a full ring
	values []T
}

// add stores a value. It replaces the oldest value if the ring is full.
func (r *ring[T]) add(value T) {
	if len(r.values) < r.max {
		r.values = append(r.values, value)
		return
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % r.max
}

// newestFirst iterates over the stored values, starting with the newest.
func (r *ring[T]) newestFirst() iter.Seq[T] {
	return func(yield func(T) bool) {
		n := len(r.values)
		for i := range n {
			if !yield(r.values[(r.next+n-1-i)%n]) {
				return
			}
		}
	}
}
