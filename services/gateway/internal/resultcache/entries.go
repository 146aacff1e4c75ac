// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"bytes"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// entries stores up to max bytes of responses. It evicts the least recently used responses first.
type entries struct {
	max int64

	mu    sync.Mutex
	lru   *simplelru.LRU[Key, evaluation.Response]
	bytes int64
}

func newEntries(maxBytes int64) *entries {
	e := &entries{max: maxBytes}
	evicted := func(_ Key, resp evaluation.Response) { e.bytes -= entrySize(resp) }
	// NewLRU returns an error only for a size below 1. The number of entries is unlimited, because put limits their
	// bytes.
	e.lru, _ = simplelru.NewLRU(math.MaxInt, evicted)
	return e
}

func (e *entries) get(key Key) (evaluation.Response, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lru.Get(key)
}

// put stores a response and evicts older responses if necessary. It does not store a response that alone exceeds the
// limit.
func (e *entries) put(key Key, resp evaluation.Response) {
	resp.ResourceList = trimCapacity(resp.ResourceList)
	resp.Log = trimCapacity(resp.Log)
	n := entrySize(resp)
	if n > e.max {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lru.Remove(key)
	for e.bytes+n > e.max {
		e.lru.RemoveOldest()
	}
	e.lru.Add(key, resp)
	e.bytes += n
}

func (e *entries) size() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}

// trimCapacity returns a copy of b without unused capacity if more than an eighth of b is unused. The buffer of an
// output may be twice as large as the output.
func trimCapacity(b []byte) []byte {
	if cap(b)-len(b) > len(b)/8 {
		return bytes.Clone(b)
	}
	return b
}

const (
	// entryBytes is the approximate memory of an entry without its resource list, log and results.
	entryBytes = 512
	// resultBytes is the approximate memory of a result without its texts.
	resultBytes = 512
)

// entrySize returns the approximate memory of an entry, in bytes.
func entrySize(resp evaluation.Response) int64 {
	n := entryBytes + cap(resp.ResourceList) + cap(resp.Log)
	for _, r := range resp.Results {
		n += resultBytes + textBytes(r)
	}
	return int64(n)
}

// textBytes returns the bytes of a result's texts.
func textBytes(r resourcelist.Result) int {
	n := len(r.Message) + len(r.Severity)
	if ref := r.ResourceRef; ref != nil {
		n += len(ref.APIVersion) + len(ref.Kind) + len(ref.Namespace) + len(ref.Name)
	}
	if f := r.Field; f != nil {
		n += len(f.Path) + len(f.CurrentValue) + len(f.ProposedValue)
	}
	if f := r.File; f != nil {
		n += len(f.Path)
	}
	for key, value := range r.Tags {
		n += len(key) + len(value) + entryBytes/8
	}
	return n
}
