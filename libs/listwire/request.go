// SPDX-License-Identifier: Apache-2.0

package listwire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxRest is how many bytes a message may have beside its list. A larger one is left to Connect: its list, however
// small, would keep the memory of the whole.
const maxRest = 64 << 10

// firstPart is how much of a message comes before memory of its announced size is taken.
const firstPart = 64 << 10

// errSecond ends a request with more than one message, before the second one is read: memory was reserved for the
// first.
var errSecond = connect.NewError(connect.CodeUnimplemented, errors.New("unary request has multiple messages"))

// body reads the message of a request whole before it gives Connect the first byte of it, and keeps its list.
type body struct {
	io.ReadCloser
	most  int64 // bytes of a message: Connect rejects larger ones
	lists *lists

	begun bool
	whole bool        // the message has come, and nothing may follow
	ended bool        // the request has ended
	ahead net.Buffers // what Connect has not read of the message
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if err := b.begin(); err != nil {
			return 0, err
		}
	}
	switch {
	case len(b.ahead) > 0 && len(p) > 0:
		n, err := b.ahead.Read(p)
		if errors.Is(err, io.EOF) {
			err = nil // of what is ahead
		}
		return n, err
	case b.ended:
		return 0, io.EOF
	case b.whole:
		return 0, b.end()
	default:
		return b.ReadCloser.Read(p)
	}
}

// end returns why nothing follows the message.
func (b *body) end() error {
	var next [1]byte
	n, err := io.ReadFull(b.ReadCloser, next[:])
	if n > 0 {
		return errSecond
	}
	return err
}

// begin reads the message. Where it ends early, or is of another kind than usual, Connect gets what has come, and
// finds that out.
func (b *body) begin() error {
	prefix := make([]byte, prefixBytes)
	n, err := b.fill(prefix)
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if err != nil || n < prefixBytes || prefix[0] != 0 || size > b.most {
		b.add(prefix[:n])
		return err
	}
	message, err := b.message(int(size))
	if err != nil {
		return err
	}
	b.whole = len(message) == int(size)
	list, rest, ok := split(message)
	beside := uint64(len(rest))
	if !b.whole || !ok || beside > maxRest {
		b.add(prefix, message)
		return nil
	}
	b.lists.request, b.lists.kept = list, true
	binary.BigEndian.PutUint32(prefix[1:], uint32(beside))
	b.add(prefix, rest)
	return nil
}

// message reads a message of so many bytes, or as far as it comes.
func (b *body) message(size int) ([]byte, error) {
	message := make([]byte, min(size, firstPart))
	n, err := b.fill(message)
	if err != nil || n < len(message) || n == size {
		return message[:n], err
	}
	message = append(make([]byte, 0, size), message...)
	m, err := b.fill(message[n:size])
	return message[:n+m], err
}

// fill reads until p is full or the request ends, and returns how many bytes it has read.
func (b *body) fill(p []byte) (int, error) {
	n, err := io.ReadFull(b.ReadCloser, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		b.ended = true
		return n, nil
	}
	return n, err
}

// add has Connect read parts next.
func (b *body) add(parts ...[]byte) {
	for _, part := range parts {
		if len(part) > 0 {
			b.ahead = append(b.ahead, part)
		}
	}
}

// split returns the list in a message, and a copy of the other fields. As for any decoder, the last one of several
// lists is the message's. ok is false if the message is no protocol buffer.
func split(message []byte) (list, rest []byte, ok bool) {
	for len(message) > 0 {
		number, wire, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, nil, false
		}
		value := protowire.ConsumeFieldValue(number, wire, message[tag:])
		if value < 0 {
			return nil, nil, false
		}
		if number == listField && wire == protowire.BytesType {
			list, _ = protowire.ConsumeBytes(message[tag:])
		} else {
			rest = append(rest, message[:tag+value]...)
		}
		message = message[tag+value:]
	}
	return slices.Clip(list), rest, true
}
