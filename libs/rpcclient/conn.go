// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"errors"
	"net"
	"syscall"
)

// plainConn is a connection whose errors have no type. If a server breaks a connection, the error is ECONNRESET or
// EPIPE. Connect would return Canceled for these errors, because on a server they mean that the client left, and
// the caller would not retry.
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

// plainError returns an error with the same text but without the type, if Connect would misinterpret the type. It
// returns other errors unchanged.
func plainError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New(err.Error())
	}
	return err
}
