// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"bytes"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

func (c *Cache) get(key Key) (evaluation.Response, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Get(key)
}

func (c *Cache) put(key Key, resp evaluation.Response) {
	resp.ResourceList = trimCapacity(resp.ResourceList)
	resp.Log = trimCapacity(resp.Log)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Put(key, resp)
}

// size returns the approximate memory of all cached responses, in bytes.
func (c *Cache) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Bytes()
}

// trimCapacity returns a copy of b without unused capacity if the unused capacity exceeds an eighth of b's length. The
// buffer of an output may be twice as large as the output, and would waste memory in the cache.
func trimCapacity(b []byte) []byte {
	if cap(b)-len(b) > len(b)/8 {
		return bytes.Clone(b)
	}
	return b
}

const (
	// responseBytes is the approximate memory of a response in the cache, without its resource list, log and results.
	responseBytes = 168
	// resultBytes is the approximate memory of a result, without the texts that it contains.
	resultBytes = 512
	// tagBytes is the approximate memory of a result's tag, without key and value.
	tagBytes = 64
)

// sizeOf returns the approximate memory of a cached response, in bytes. The cache limits the sum of these sizes.
func sizeOf(_ Key, resp evaluation.Response) int64 {
	n := responseBytes + cap(resp.ResourceList) + cap(resp.Log)
	for _, r := range resp.Results {
		n += resultBytes + textBytes(r)
	}
	return int64(n)
}

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
		n += len(key) + len(value) + tagBytes
	}
	return n
}
