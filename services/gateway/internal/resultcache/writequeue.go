// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"
	"sync/atomic"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

const (
	// maxQueued bounds the entries that wait to be written, and maxQueuedBytes their bytes, unless one entry
	// may be larger.
	maxQueued      = 256
	maxQueuedBytes = 16 << 20
)

// entry is an entry that waits to be written.
type entry struct {
	key      Key
	response evaluation.Response
}

// writeQueue has the entries that wait to be written or are being written.
type writeQueue struct {
	maxResponse, max int64
	entries          chan entry
	bytes            atomic.Int64
}

// newWriteQueue returns a queue for responses of at most maxResponse bytes.
func newWriteQueue(maxResponse int64) *writeQueue {
	return &writeQueue{
		maxResponse: maxResponse, max: max(maxQueuedBytes, maxResponse+entryBytes), entries: make(chan entry, maxQueued),
	}
}

// add adds an entry, and reports whether it fits.
func (q *writeQueue) add(e entry) bool {
	if int64(len(e.response.ResourceList)+len(e.response.Log)) > q.maxResponse {
		return false
	}
	n := size(e.response)
	if q.bytes.Add(n) <= q.max {
		select {
		case q.entries <- e:
			return true
		default:
		}
	}
	q.bytes.Add(-n)
	return false
}

// next waits for the next entry. It reports false when ctx ends.
func (q *writeQueue) next(ctx context.Context) (entry, bool) {
	if ctx.Err() != nil {
		return entry{}, false
	}
	select {
	case e := <-q.entries:
		return e, true
	case <-ctx.Done():
		return entry{}, false
	}
}

// done frees the bytes of an entry that was written.
func (q *writeQueue) done(e entry) { q.bytes.Add(-size(e.response)) }

// size returns the bytes of all entries.
func (q *writeQueue) size() int64 { return q.bytes.Load() }
