// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// Limits of lists that we decode in full. We limit values because the YAML library creates a node of about 200 bytes
// for each value, so that a list of many short values needs much memory. We limit %TAG directives because the library
// searches all directives for each value.
const (
	anyValues = 1 << 18
	// bytesPerValue is the minimum average size of a value in lists with more than anyValues values. Only artificial lists
	// are below this minimum, because even compact JSON of Kubernetes resources needs seven bytes per value.
	bytesPerValue = 5
	// maxTagDirectives is the maximum number of lines that start like a %TAG directive.
	maxTagDirectives = 64
)

// Limits of a list's results. We decode results to Go values, unlike the rest of a list.
const (
	maxResults = 100_000
	// maxKeys is the maximum number of keys in a mapping of the results. It is limited because the YAML library compares
	// each key with each other key.
	maxKeys = 1000
	// maxResultExpansion is the maximum size of the results after the expansion of aliases, in bytes. If it is greater,
	// the maximum is maxResultExpansionFactor times the size of the whole list instead.
	maxResultExpansion       = 1 << 20
	maxResultExpansionFactor = 2
)

// checkLimits returns an error if decoding data could need too much memory or time. Otherwise, it returns the
// approximate number of values in data.
func checkLimits(data []byte) (values int, err error) {
	values = countValues(data)
	if most := max(anyValues, len(data)/bytesPerValue); values > most {
		return 0, fmt.Errorf("the list has about %d values in %d bytes, and may have up to %d: "+
			"write it in YAML's block style, or split it",
			values, len(data), most)
	}
	if n := countTagDirectives(data); n > maxTagDirectives {
		return 0, fmt.Errorf("%d lines begin with %%TAG, and up to %d may: write tags out", n, maxTagDirectives)
	}
	return values, nil
}

// countValues estimates the number of nodes that the YAML library creates for data. It counts the characters that
// precede values, such as ":" and ",", even inside texts. The estimate is at least half of the true number.
func countValues(data []byte) int {
	values, before := 1, byte('\n')
	for i, c := range data {
		switch c {
		case ',', '[', '{':
			values++
		case '-', '?':
			if i+1 == len(data) || isSpace(data[i+1]) {
				values++
			}
		case ':':
			if before == '"' || before == '\'' || i+1 == len(data) || isSpace(data[i+1]) {
				values += 2
			}
		}
		before = c
	}
	return values
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// countTagDirectives returns the number of lines that start like a %TAG directive.
func countTagDirectives(data []byte) int {
	n := bytes.Count(data, []byte("\n%TAG")) + bytes.Count(data, []byte("\r%TAG"))
	if bytes.HasPrefix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("%TAG")) {
		n++
	}
	return n
}

// Limits of the memory of concurrent full decodes, in bytes. Small decodes, which need at most smallDecode each, share
// maxSmallDecoding. All other decodes share maxDecoding, so that small decodes never wait for large decodes.
const (
	maxDecoding      = 192 << 20
	maxSmallDecoding = 64 << 20
	smallDecode      = 4 << 20
)

// Estimated memory of a full decode, in bytes. Each value needs a node, and each byte of the list is copied several
// times.
const (
	memoryPerValue = 200
	memoryPerByte  = 4
)

// decodeCost estimates the memory, in bytes, for a full decode of a list.
func decodeCost(bytes, values int) int64 {
	return memoryPerByte*int64(bytes) + memoryPerValue*int64(values)
}

// decoding limits the concurrent scans and full decodes of resource lists in this process.
var decoding = newTurns()

// largeScan is the size of a list, in bytes, from which we limit the number of concurrent scans. A scan of this size
// takes about a millisecond.
const largeScan = 256 << 10

// turns limits the concurrent scans and full decodes of lists. The semaphores small and large limit the memory of
// decodes. Decodes that would exceed the limit wait in the order of their arrival. The semaphore processors makes large
// decodes leave at least one processor for other requests. The semaphore scans is separate, so that a scan of some
// milliseconds does not wait seconds for a full decode.
type turns struct{ small, large, processors, scans *semaphore.Weighted }

func newTurns() turns {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(most), scans: semaphore.NewWeighted(most),
	}
}

// acquireScan waits until a scan of the given number of bytes may run. The caller must call release after the scan. If
// ctx is canceled, acquireScan returns the error of ctx. The limit on scans keeps small requests fast. This is because
// Go runs a goroutine for up to 10 ms before it switches to the next. Without the limit, a small request would often
// wait for many large scans.
func (t turns) acquireScan(ctx context.Context, bytes int) (release func(), err error) {
	if bytes < largeScan {
		return func() {}, nil
	}
	return acquireFrom(ctx, t.scans, 1)
}

// acquireDecode waits until a full decode that needs cost bytes of memory may run. The caller must call release after
// the decode. A decode with a cost above maxDecoding runs only while no other large decode runs. If ctx is canceled,
// acquireDecode returns the error of ctx.
func (t turns) acquireDecode(ctx context.Context, cost int64) (release func(), err error) {
	if cost <= smallDecode {
		return acquireFrom(ctx, t.small, cost)
	}
	endTurn, err := acquireFrom(ctx, t.processors, 1)
	if err != nil {
		return nil, err
	}
	free, err := acquireFrom(ctx, t.large, min(cost, maxDecoding))
	if err != nil {
		endTurn()
		return nil, err
	}
	return func() { free(); endTurn() }, nil
}

// acquireFrom acquires n units of a semaphore, and returns a function that releases them.
func acquireFrom(ctx context.Context, from *semaphore.Weighted, n int64) (release func(), err error) {
	if err := from.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { from.Release(n) }, nil
}
