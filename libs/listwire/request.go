// SPDX-License-Identifier: Apache-2.0

package listwire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// body reads the message of a request whole before it gives Connect the first byte of it, and keeps its list.
type body struct {
	io.ReadCloser
	most  int64  // bytes of a message: Connect rejects larger ones
	lists *lists // nil if Connect decodes the list

	begun bool
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
	if len(b.ahead) == 0 || len(p) == 0 {
		return b.ReadCloser.Read(p)
	}
	return b.ahead.Read(p)
}

// begin reads the message. Where it ends early, or is of another kind than usual, Connect gets what has come, and
// finds that out.
func (b *body) begin() error {
	prefix := make([]byte, prefixBytes)
	n, err := b.fill(prefix)
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if err != nil || n < prefixBytes || prefix[0] != 0 || size == 0 || size > b.most {
		b.add(prefix[:n])
		return err
	}
	message := make([]byte, size)
	if n, err = b.fill(message); err != nil {
		return err
	}
	list, rest, ok := split(message[:n])
	if b.lists == nil || n < len(message) || !ok {
		b.add(prefix, message[:n])
		return nil
	}
	b.lists.request = list
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(rest))) //nolint:gosec // less than was announced
	b.add(prefix, rest)
	return nil
}

// fill reads until p is full or the request ends, and returns how many bytes it has read.
func (b *body) fill(p []byte) (int, error) {
	n, err := io.ReadFull(b.ReadCloser, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
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
