// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"errors"
	"net"
	"syscall"
)

// plainConn is a connection whose errors do not say that it was broken by the other side. Connect takes those for a
// caller that has left, which they are at a server: callers would get Canceled, where trying again would help.
type plainConn struct{ net.Conn }

// Read implements net.Conn.
func (c plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, plain(err)
}

// Write implements net.Conn.
func (c plainConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, plain(err)
}

// plain returns err without what Connect looks for.
func plain(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
