// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"strings"
)

// streamError has the form of the error with which a stream of HTTP/2 is reset: package
// http lets errors.As copy its own, unexported one to any struct of that form.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream reset" }

// broken are the texts of the errors with which connections of HTTP/2 end under a
// request, or are about to. Package http has no other way to distinguish them.
var broken = []string{"GOAWAY", "http2: client connection", "http2: client conn "}

// isReset reports whether err is a stream or a connection of HTTP/2 that was given up, as
// servers do that are restarted or have too much to do. The request was not at fault.
func isReset(err error) bool {
	if _, ok := errors.AsType[streamError](err); ok {
		return true
	}
	for _, text := range broken {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
