// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // codec for all other messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// listField is the number of the protobuf field resource_list, in requests and in responses.
const listField = protowire.Number(1)

// maxListPrefix is the maximum number of bytes before the content of a resource list in a message. These bytes are two
// varints of up to 10 bytes each: the field number, followed by the list's length.
const maxListPrefix = 2 * 10

// codec encodes and decodes messages in gRPC's usual format, but does not copy resource lists. It sends a request's
// list from the request's own memory, and reads a response's list directly into the response.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2. The returned buffers contain the request's resource list itself, so callers
// must not change the list before the call has ended.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	req, ok := v.(*evaluator.EvaluateFunctionRequest)
	if !ok || len(req.GetResourceList()) == 0 {
		return c.CodecV2.Marshal(v)
	}
	rest := &evaluator.EvaluateFunctionRequest{Image: req.GetImage(), Tag: req.GetTag()}
	rest.ProtoReflect().SetUnknown(req.ProtoReflect().GetUnknown())
	others, err := proto.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	prefix := protowire.AppendTag(nil, listField, protowire.BytesType)
	prefix = protowire.AppendVarint(prefix, uint64(len(req.GetResourceList())))
	message := mem.BufferSlice{mem.SliceBuffer(prefix), mem.SliceBuffer(req.GetResourceList())}
	if len(others) > 0 {
		message = append(message, mem.SliceBuffer(others))
	}
	return message, nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	resp, ok := v.(*evaluator.EvaluateFunctionResponse)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	reader := data.Reader()
	defer func() { _ = reader.Close() }()
	list, rest, err := readList(bufio.NewReaderSize(reader, maxListPrefix), data.Len())
	if err != nil {
		return err
	}
	// Merge the rest of the message into the response, so that the response keeps the list. If the rest contains a further
	// resource list, this list replaces the first, as in other protobuf decoders.
	resp.Reset()
	resp.ResourceList = list
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(rest, resp)
}

// readList reads a message of size bytes, and returns the resource list and the rest. The list must be the first
// field, as in messages that Go and C++ encode. Otherwise rest is the whole message.
func readList(r *bufio.Reader, size int) (list, rest []byte, err error) {
	prefix, err := r.Peek(min(size, maxListPrefix))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if length, n := listPrefix(prefix); n > 0 && length <= size-n {
		_, _ = r.Discard(n) // cannot fail: Peek has read n bytes
		list = make([]byte, length)
		if _, err := io.ReadFull(r, list); err != nil {
			return nil, nil, fmt.Errorf("read the resource list: %w", err)
		}
		size -= n + len(list)
	}
	rest = make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, fmt.Errorf("read the message: %w", err)
	}
	return list, rest, nil
}

// listPrefix decodes the beginning of a message, up to the resource list. It returns the list's length and the number n
// of decoded bytes. n is 0 if the first field is another field, or if the length is invalid or exceeds MaxInt32.
func listPrefix(message []byte) (length, n int) {
	number, wire, tagged := protowire.ConsumeTag(message)
	if tagged < 0 || number != listField || wire != protowire.BytesType {
		return 0, 0
	}
	long, sized := protowire.ConsumeVarint(message[tagged:])
	if sized < 0 || long > math.MaxInt32 {
		return 0, 0
	}
	return int(long), tagged + sized
}
