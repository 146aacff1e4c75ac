// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"errors"
	"net"
	"syscall"
)

// plainConn is a connection whose errors do not reveal that the other side broke it. Connect would interpret such
// errors as a client that left, as at a server, and callers would get Canceled although a retry may help.
type plainConn struct{ net.Conn }

// Read implements net.Conn.
func (c plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, plainError(err)
}

// Write implements net.Conn.
func (c plainConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, plainError(err)
}

// plainError returns err without the errors that Connect interprets.
func plainError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
