// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"errors"
	"net"
	"syscall"
)

// plainConn is a connection that hides the types of errors for a connection that the server broke. On a server, such
// errors mean that the client left. Connect interprets them so on a client too, and would return Canceled although a
// retry may help.
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

// plainError returns err, or only its text if Connect would interpret its type.
func plainError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
