// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
)

// collector gathers what a function writes to one pipe.
type collector struct {
	stream string
	pipe   *os.File
	limit  int64 // bytes
	buf    []byte
	// expected is how large buf will probably get.
	expected atomic.Int64
}

// newCollector returns a collector for at most limit bytes; size is how many are
// expected.
func newCollector(stream string, pipe *os.File, limit int64, size int) *collector {
	// One byte more than the limit is what tells "full" from "too much".
	buf := make([]byte, 0, min(int64(size), limit+1))
	return &collector{stream: stream, pipe: pipe, limit: limit, buf: buf}
}

// expect records how many bytes are expected, which may be known late.
func (c *collector) expect(size int) { c.expected.Store(int64(size)) }

// gather reads the pipe to its end. If there is more than the limit it keeps the
// first limit bytes and returns an error. tooMuch is asked after each read whether the
// bytes so far are too many for a process that is idle.
func (c *collector) gather(tooMuch func(size int) bool) error {
	for {
		n, err := readAvailable(c.pipe, c.free())
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case int64(len(c.buf)) > c.limit:
			c.buf = c.buf[:c.limit]
			return limitError(c.stream, c.limit)
		case tooMuch(len(c.buf)):
			return errTalksBeforeInput
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the function's %s: %w", c.stream, err)
		}
	}
}

// free returns the free part of the buffer. When it is full it is doubled, or made as
// large as expected.
func (c *collector) free() []byte {
	size := len(c.buf)
	if size == cap(c.buf) {
		more := max(int64(size), c.expected.Load()-int64(size))
		c.buf = slices.Grow(c.buf, int(min(more, c.limit+1-int64(size))))
	}
	return c.buf[size:min(int64(cap(c.buf)), c.limit+1)]
}
