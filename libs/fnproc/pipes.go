// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// collector gathers what a function writes to one pipe.
type collector struct {
	stream string
	pipe   *os.File
	limit  int64 // bytes
	// cut is true if the middle of what is too long is left out. Else too many bytes are an error.
	cut     bool
	buf     []byte
	omitted int64         // bytes that were left out
	ended   chan struct{} // closed when the pipe has ended, or reading it
	// expected is how large buf will probably get.
	expected atomic.Int64
}

// newCollector returns a collector for at most limit bytes; size is how many are
// expected.
func newCollector(stream string, pipe *os.File, limit int64, size int) *collector {
	c := &collector{stream: stream, pipe: pipe, limit: limit, ended: make(chan struct{})}
	c.buf = make([]byte, 0, min(int64(size), c.capacity()))
	return c
}

// capacity returns how many bytes buf may have. One byte more than the limit is what tells "full" from "too much".
// More are read before the middle of them is left out, which copies the rest.
func (c *collector) capacity() int64 {
	if c.cut {
		return c.limit + c.limit/2 + minBuffer
	}
	return c.limit + 1
}

// expect records how many bytes are expected, which may be known late.
func (c *collector) expect(size int) { c.expected.Store(int64(size)) }

// gather reads the pipe to its end. If there is more than the limit it keeps the
// first limit bytes and returns an error, or leaves out the middle. tooMuch is asked after each read whether the
// bytes so far are too many for a process that is idle.
func (c *collector) gather(tooMuch func(size int) bool) error {
	defer close(c.ended)
	for {
		n, err := readAvailable(c.pipe, c.free())
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case !c.cut && int64(len(c.buf)) > c.limit:
			c.buf = c.buf[:c.limit]
			return limitError(c.stream, c.limit)
		case tooMuch(len(c.buf) + int(c.omitted)):
			return errTalksBeforeInput
		case errors.Is(err, io.EOF):
			c.finish()
			return nil
		case err != nil:
			return fmt.Errorf("read the function's %s: %w", c.stream, err)
		}
	}
}

// free returns the free part of the buffer. When it is full it is doubled, or made as
// large as expected, or the middle of it is left out.
func (c *collector) free() []byte {
	if int64(len(c.buf)) == c.capacity() {
		c.leaveOut()
	}
	size := len(c.buf)
	if size == cap(c.buf) {
		more := max(int64(size), c.expected.Load()-int64(size))
		c.buf = slices.Grow(c.buf, int(min(more, c.capacity()-int64(size))))
	}
	return c.buf[size:min(int64(cap(c.buf)), c.capacity())]
}

// leaveOut leaves out the middle of what is more than the limit.
func (c *collector) leaveOut() {
	more := int64(len(c.buf)) - c.limit
	c.buf = slices.Delete(c.buf, int(c.limit/2), int(c.limit/2+more))
	c.omitted += more
}

// finish puts a line with the number of bytes in the place of what was left out.
func (c *collector) finish() {
	if int64(len(c.buf)) > c.limit {
		c.leaveOut()
	}
	if c.omitted > 0 {
		note := fmt.Sprintf("\n[%d bytes of the %s left out]\n", c.omitted, c.stream)
		c.buf = slices.Insert(c.buf, int(c.limit/2), []byte(note)...)
	}
}

// writeAvailable writes what fits into pipe without waiting, and returns how many bytes that
// were.
func writeAvailable(pipe *os.File, data []byte) (n int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Write(int(fd), data) })
	return max(n, 0)
}

// readAvailable reads from pipe and waits for data until the pipe's read deadline.
// After that it reads what is in the pipe without waiting, and then reports io.EOF.
func readAvailable(pipe *os.File, buf []byte) (int, error) {
	n, err := pipe.Read(buf)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	if err := raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), buf) }); err != nil {
		return 0, err
	}
	switch {
	case n > 0:
		return n, nil
	case readErr == nil || errors.Is(readErr, unix.EAGAIN):
		return 0, io.EOF
	}
	return 0, os.NewSyscallError("read", readErr)
}
