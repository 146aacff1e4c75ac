// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"encoding/binary"
	"errors"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
)

// response is a ResponseWriter that inserts the resource list into the message that Connect writes. It does not
// implement http.Flusher. Otherwise Connect would flush the response twice, after its message and after its trailers,
// and each flush would wake the client.
type response struct {
	http.ResponseWriter
	call *call
}

// Unwrap returns the original ResponseWriter, for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// trailers is the flag in a gRPC-Web prefix that announces trailers instead of a message.
const trailers = 0x80

// errNotAPrefix means that Connect did not begin a response with the prefix of a message. Without this error, the
// client would get a message without a resource list. Connect always writes the prefix today, but this may change.
var errNotAPrefix = errors.New("the response does not begin with the prefix of an uncompressed message of gRPC")

// Write implements http.ResponseWriter. It inserts the list after the message's prefix, which Connect writes first.
func (r *response) Write(p []byte) (int, error) {
	list := r.call.response
	if len(list) == 0 {
		return r.ResponseWriter.Write(p)
	}
	r.call.response = nil
	if len(p) > 0 && p[0]&trailers != 0 { // Connect could not encode the message: the trailers contain the reason
		return r.ResponseWriter.Write(p)
	}
	if len(p) < prefixBytes || p[0] != 0 {
		return 0, errNotAPrefix
	}
	begin := make([]byte, prefixBytes, prefixBytes+fieldBytes)
	begin = protowire.AppendTag(begin, listField, protowire.BytesType)
	begin = protowire.AppendVarint(begin, uint64(len(list)))
	added := len(begin) - prefixBytes + len(list)
	size := binary.BigEndian.Uint32(p[1:]) + uint32(added) //nolint:gosec // exchangeLists bounds the message
	binary.BigEndian.PutUint32(begin[1:], size)
	for _, part := range [][]byte{begin, list, p[prefixBytes:]} {
		if len(part) == 0 {
			continue
		}
		if _, err := r.ResponseWriter.Write(part); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
