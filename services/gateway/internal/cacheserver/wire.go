// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReplyError is an error that the server replied.
type ReplyError string

func (e ReplyError) Error() string { return "the cache server replied " + strconv.Quote(string(e)) }

// answers reports whether an error is what the server replied to a command: the next reply follows it. Some replies
// are about the connection, and not the command: it is not logged in, or it leads to a server that was replaced.
func answers(err error) bool {
	reply, ok := errors.AsType[ReplyError](err)
	switch code, _, _ := strings.Cut(string(reply), " "); code {
	case "NOAUTH", "READONLY", "MASTERDOWN":
		return false
	}
	return ok
}

// maxErrorBytes bounds what is kept of a server's error.
const maxErrorBytes = 200

var errReply = errors.New("the cache server's reply is not one of the Redis protocol to this command")

// writeCommand writes a command: an array of strings.
func writeCommand(w *bufio.Writer, args [][]byte) error {
	_, _ = fmt.Fprintf(w, "*%d\r\n", len(args)) // Flush returns the first error
	for _, arg := range args {
		_, _ = fmt.Fprintf(w, "$%d\r\n", len(arg))
		_, _ = w.Write(arg)
		_, _ = w.WriteString("\r\n")
	}
	return w.Flush()
}

// readReply reads the reply to a command. What the server claims decides nothing beyond limit, which bounds the
// value. The value is nil if there is none, and after a simple reply, such as OK.
func readReply(r *bufio.Reader, limit int) (value []byte, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+':
		return nil, nil
	case '-':
		return nil, ReplyError(rest[:min(len(rest), maxErrorBytes)])
	case '$':
		return readValue(r, string(rest), limit)
	default:
		return nil, errReply
	}
}

// readLine returns a line without its end. It has at least one byte, and is valid until the next read. Lines
// are shorter than the reader's buffer.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errReply
	}
	if err != nil {
		return nil, fmt.Errorf("read the cache server's reply: %w", err)
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, errReply
	}
	return line, nil
}

// readValue reads a string of the length in text, which is -1 if there is none.
func readValue(r *bufio.Reader, text string, limit int) ([]byte, error) {
	if text == "-1" {
		return nil, nil
	}
	length, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, errReply
	}
	if length > uint64(limit) { //nolint:gosec // limit is positive
		return nil, fmt.Errorf("the cache server has a value of %d bytes, more than the %d that are accepted", length, limit)
	}
	value := make([]byte, length+2)
	if _, err := io.ReadFull(r, value); err != nil {
		return nil, fmt.Errorf("read a value from the cache server: %w", err)
	}
	if !bytes.HasSuffix(value, []byte("\r\n")) {
		return nil, errReply
	}
	return value[:length:length], nil
}
