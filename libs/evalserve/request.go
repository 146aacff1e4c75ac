// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

const (
	// maxRestBytes limits the size of the other fields in a message whose resource list we do not copy. Such a list keeps
	// the memory of the whole message in use, including the other fields. If these fields are larger than maxRestBytes,
	// Connect decodes the whole message and copies the list.
	maxRestBytes = 64 << 10
	// firstBytes is the number of bytes that must arrive before we allocate memory for the whole message. Thus clients
	// that announce a large message but send nothing cost little memory.
	firstBytes = 64 << 10
)

// errSecondMessage rejects a request with a second message. We do not read the second message, because we reserved
// memory only for the first message.
var errSecondMessage = connect.NewError(connect.CodeUnimplemented, errors.New("unary request has multiple messages"))

// isGRPC reports whether messages with this content type begin with the 5-byte prefix of gRPC.
func isGRPC(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(contentType), "application/grpc")
}

// isProto reports whether Connect decodes messages with this content type as protocol buffers over gRPC. Like Connect,
// it ignores the case of letters.
func isProto(contentType string) bool {
	return slices.Contains([]string{
		"application/grpc", "application/grpc+proto", "application/grpc-web", "application/grpc-web+proto",
	}, strings.ToLower(contentType))
}

// body is the request body that Connect reads. It omits the resource list of a gRPC message, because Connect would copy
// the list. The service receives the list from the interceptor exchangeLists instead.
type body struct {
	io.ReadCloser
	call *call
	max  int64 // maximum size of a message; Connect rejects larger messages

	err      error       // error that Connect gets instead of the request
	rejected error       // reason why the request was not read completely
	ahead    net.Buffers // parts that Connect reads before the rest of the request
	whole    bool        // true if the message is complete and no bytes may follow
	ended    bool        // true if the request has ended
	read     int64       // number of bytes that Connect has read of a request that is not gRPC
}

// receiveRequest reserves memory for a request, and reads the message of a gRPC request. It does not read requests in
// Connect's own protocol. Connect reads these itself, because they do not become larger when they are decoded.
func (b *body) receiveRequest(r *http.Request) {
	if !isGRPC(r.Header.Get("Content-Type")) {
		size := r.ContentLength
		if size < 0 || size > b.max {
			size = b.max // Connect reads at most max bytes
		}
		b.reserveMemory(r.Context(), size)
		return
	}
	prefix := make([]byte, prefixBytes)
	n, err := b.readFull(prefix)
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if err != nil || n < prefixBytes {
		b.failRequest(err)
		b.pushAhead(prefix[:n])
		return
	}
	b.reserveMemory(r.Context(), min(size, b.max))
	if b.err == nil && prefix[0] == 0 && size <= b.max {
		b.failRequest(b.receiveMessage(prefix, int(size)))
	} else {
		b.pushAhead(prefix) // Connect rejects the prefix
	}
}

// reserveMemory reserves size bytes for a request. If this fails, Connect answers the request with the error.
func (b *body) reserveMemory(ctx context.Context, size int64) {
	if b.rejected = b.call.reservation.acquire(ctx, size); b.rejected != nil {
		b.err = rpcfault.ToConnect(b.rejected)
	}
}

// failRequest makes Connect answer the request with err, an error from reading the request. A *connect.Error is from
// package rpcserve, and means that the client sends too slowly. Such a request counts as rejected.
func (b *body) failRequest(err error) {
	b.err = err
	if given, ok := errors.AsType[*connect.Error](err); ok {
		b.rejected = rpcfault.FromConnect(given)
	}
}

// receiveMessage reads a message of size bytes and removes its resource list, so that Connect does not copy the list.
// It passes a truncated message to Connect unchanged.
func (b *body) receiveMessage(prefix []byte, size int) error {
	message, err := b.readMessage(size)
	if err != nil {
		return err
	}
	b.whole = len(message) == size
	if b.call.proto && b.whole {
		if list, rest, ok := splitList(message); ok && len(rest) <= maxRestBytes {
			b.call.request = list
			b.call.split = true
			message = rest
			binary.BigEndian.PutUint32(prefix[1:], uint32(len(rest))) //nolint:gosec // bounded above
		}
	}
	b.pushAhead(prefix, message)
	return nil
}

// readMessage reads a message of size bytes. If the client sends fewer bytes, it returns those bytes.
func (b *body) readMessage(size int) ([]byte, error) {
	message := make([]byte, min(size, firstBytes))
	n, err := b.readFull(message)
	if err != nil || n < len(message) || n == size {
		return message[:n], err
	}
	message = append(make([]byte, 0, size), message...)
	m, err := b.readFull(message[n:size])
	return message[:n+m], err
}

// readFull reads until p is full or the request ends, and returns the number of bytes.
func (b *body) readFull(p []byte) (int, error) {
	n, err := io.ReadFull(b.ReadCloser, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		b.ended = true
		return n, nil
	}
	return n, err
}

// pushAhead makes Connect read the given parts before the rest of the request.
func (b *body) pushAhead(parts ...[]byte) {
	for _, part := range parts {
		if len(part) > 0 {
			b.ahead = append(b.ahead, part)
		}
	}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(b.ahead) > 0 && len(p) > 0:
		n, _ := b.ahead.Read(p) // the error only marks the end of ahead
		return n, nil
	case b.ended:
		return 0, io.EOF
	case b.whole:
		return 0, b.readEnd()
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if errors.Is(err, io.EOF) {
		b.call.reservation.shrink(b.read)
	} else {
		b.failRequest(err)
	}
	return n, err
}

// readEnd returns io.EOF at the end of the request, and errSecondMessage if more bytes follow.
func (b *body) readEnd() error {
	var next [1]byte
	if n, err := io.ReadFull(b.ReadCloser, next[:]); n == 0 {
		return err
	}
	return errSecondMessage
}

// splitList separates the resource list of a message from a copy of the other fields, without copying the list. If
// there are several lists, it returns the last list, like any decoder. If the message is not a protocol buffer,
// splitList returns false.
func splitList(message []byte) (list, rest []byte, ok bool) {
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
