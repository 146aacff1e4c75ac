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

// collector reads the stdout or stderr of a function from a pipe, up to a limit.
type collector struct {
	stream string
	pipe   *os.File
	limit  int64 // maximum number of bytes
	// cut is true if output beyond the limit is shortened by removing its middle. Otherwise such output is an error.
	cut     bool
	buf     []byte
	omitted int64         // number of bytes removed from the middle
	ended   chan struct{} // closed after the last read
	// expected is the probable size of the output in bytes. A full buffer grows to this size.
	expected atomic.Int64
}

// newCollector returns a collector that keeps at most limit bytes of output. Size is the expected number of bytes.
func newCollector(stream string, pipe *os.File, limit int64, size int) *collector {
	c := &collector{stream: stream, pipe: pipe, limit: limit, ended: make(chan struct{})}
	c.buf = make([]byte, 0, min(int64(size), c.maxSize()))
	return c
}

// maxSize returns the maximum size of buf in bytes. One byte above the limit is enough to detect output that is too
// long. But if c.cut is true, we remove the middle of such output. The buffer may then exceed the limit by half, so
// that we rarely copy bytes to remove the middle.
func (c *collector) maxSize() int64 {
	if c.cut {
		return c.limit + c.limit/2 + minBuffer
	}
	return c.limit + 1
}

// expectSize records the expected size of the output. It may be called while the collector is already reading.
func (c *collector) expectSize(size int) { c.expected.Store(int64(size)) }

// readAll reads the pipe until it is closed. If c.cut is true, it removes the middle of output that exceeds the limit.
// Otherwise it keeps the beginning of such output and returns an error. It passes the number of bytes read so far to
// the callback tooMuch. If a spare process has written too much before it got its input, tooMuch returns true, and
// readAll returns an error. After the pipe's read deadline, readAll reads only the bytes that are already in the pipe.
// Thus no earlier output is lost, and a process that continues to write cannot keep readAll from returning.
func (c *collector) readAll(tooMuch func(size int) bool) error {
	defer close(c.ended)
	source := io.Reader(c.pipe)
	for {
		n, err := source.Read(c.freeSpace())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			source, err = unreadPart(c.pipe)
		}
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case !c.cut && int64(len(c.buf)) > c.limit:
			c.buf = c.buf[:c.limit]
			return limitError(c.stream, c.limit)
		case tooMuch(len(c.buf) + int(c.omitted)):
			return errTalksBeforeInput
		case errors.Is(err, io.EOF):
			c.noteOmitted()
			return nil
		case err != nil:
			return fmt.Errorf("read the function's %s: %w", c.stream, err)
		}
	}
}

// freeSpace returns the free part of the buffer. It enlarges a full buffer to twice its size or to the expected
// size. At the maximum size, it removes the middle of the output instead.
func (c *collector) freeSpace() []byte {
	if int64(len(c.buf)) == c.maxSize() {
		c.leaveOut()
	}
	size := len(c.buf)
	if size == cap(c.buf) {
		more := max(int64(size), c.expected.Load()-int64(size))
		c.buf = slices.Grow(c.buf, int(min(more, c.maxSize()-int64(size))))
	}
	return c.buf[size:min(int64(cap(c.buf)), c.maxSize())]
}

// leaveOut removes bytes from the middle of the buffer until limit bytes remain.
func (c *collector) leaveOut() {
	more := int64(len(c.buf)) - c.limit
	c.buf = slices.Delete(c.buf, int(c.limit/2), int(c.limit/2+more))
	c.omitted += more
}

// noteOmitted inserts a line with the number of bytes that were removed from the middle.
func (c *collector) noteOmitted() {
	if int64(len(c.buf)) > c.limit {
		c.leaveOut()
	}
	if c.omitted > 0 {
		note := fmt.Sprintf("\n[%d bytes of the %s left out]\n", c.omitted, c.stream)
		c.buf = slices.Insert(c.buf, int(c.limit/2), []byte(note)...)
	}
}

// writeAvailable writes as many bytes as the pipe accepts without blocking, and returns their number.
func writeAvailable(pipe *os.File, data []byte) (n int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Write(int(fd), data) })
	return max(n, 0)
}

// unreadPart returns a reader of the bytes that a pipe currently contains. The reader never blocks. It returns fewer
// bytes if another process also reads from the pipe, or if the kernel discards the rest of a packet (O_DIRECT).
func unreadPart(pipe *os.File) (io.Reader, error) {
	unread, err := countUnread(pipe)
	return io.LimitReader(availableReader{pipe}, int64(unread)), err
}

// availableReader reads a pipe without blocking, regardless of the pipe's read deadline. It returns io.EOF when the
// pipe is empty.
type availableReader struct{ pipe *os.File }

func (r availableReader) Read(buffer []byte) (n int, err error) {
	raw, err := r.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buffer) })
	if n == 0 || errors.Is(err, unix.EAGAIN) {
		err = io.EOF
	}
	return max(n, 0), errors.Join(controlErr, err)
}

// countUnread returns the number of unread bytes in a pipe.
func countUnread(pipe *os.File) (n int, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unreadBytes) })
	return n, errors.Join(controlErr, err)
}
