// SPDX-License-Identifier: Apache-2.0

package pipenet

import (
	"net"
	"slices"
	"sync"
)

// conn is one side of a connection to a host of the network. It buffers written data, as a kernel does. While the
// host is silent, it does not forward the data.
type conn struct {
	net.Conn // one side of a net.Pipe

	host   *Host
	mu     sync.Mutex
	change *sync.Cond
	out    [][]byte
	closed bool
}

// joinConn returns a connection of the host. It sends data through end, one side of a pipe.
func (h *Host) joinConn(end net.Conn) *conn {
	c := &conn{Conn: end, host: h}
	c.change = sync.NewCond(&c.mu)
	h.mu.Lock()
	h.conns = append(h.conns, c)
	h.mu.Unlock()
	go c.forwardWrites() // returns when the connection is closed
	return c
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.out = append(c.out, slices.Clone(p))
	c.change.Signal()
	return len(p), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.change.Signal()
	return nil
}

func (c *conn) wakePump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change.Signal()
}

// forwardWrites forwards written data to the other side until the connection is closed, and then closes the pipe.
func (c *conn) forwardWrites() {
	defer func() { _ = c.Conn.Close() }()
	for {
		next, ok := c.nextWrite()
		if !ok {
			return
		}
		if _, err := c.Conn.Write(next); err != nil {
			_ = c.Close()
			return
		}
	}
}

// nextWrite waits until data can be forwarded, and returns the data. It returns false when the connection is closed
// and no further data can be forwarded.
func (c *conn) nextWrite() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (len(c.out) == 0 || c.host.silent.Load()) {
		c.change.Wait()
	}
	if len(c.out) == 0 || (c.closed && (c.host.silent.Load() || c.host.dead.Load())) {
		return nil, false
	}
	next := c.out[0]
	c.out = c.out[1:]
	return next, true
}
