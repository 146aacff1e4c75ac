// SPDX-License-Identifier: Apache-2.0

package podconn_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

// TestAnswersInSmallFramesAreRejected has pods that answer with 60,000 bytes in frames of one byte, which would take
// megabytes of memory, and in larger ones.
func TestAnswersInSmallFramesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		answer answer
		calls  int
		want   codes.Code
	}{
		"frames of a byte":              {answer{size: 1}, 1, codes.Unavailable},
		"frames of ten":                 {answer{size: 10}, 1, codes.Unavailable},
		"headers of others in between":  {answer{size: 1, headers: true}, 1, codes.Unavailable},
		"padded frames":                 {answer{size: 1, padding: make([]byte, 255)}, 1, codes.Unavailable},
		"frames of 256":                 {answer{size: 256}, 1, codes.OK},
		"large frames":                  {answer{size: 16000}, 1, codes.OK},
		"many answers with a small end": {answer{size: 15000}, 2000, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			address := serveFrames(t, tc.answer) // ends after the pool has closed its connection
			pool := newPoolOf(t, podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20})
			conn := get(t, pool, podconn.Pod{UID: "pod", Address: address})
			defer conn.Release(false)
			if err := conn.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range tc.calls {
				_, err := conn.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{Image: "fn"})
				if got := status.Code(err); got != tc.want {
					t.Fatalf("answer %d: %v, want %v", i, err, tc.want)
				}
			}
		})
	}
}

// answer is how a pod answers: in frames of a size, each with padding, and with a HEADERS frame of a stream that does
// not exist in front of each.
type answer struct {
	size    int
	padding []byte
	headers bool
}

// serveFrames serves connections, whose requests all get the same answer: on a busy machine the pool dials twice, and
// uses the connection that answers first.
func serveFrames(t *testing.T, as answer) (address string) {
	t.Helper()
	listener := servetest.Listen(t)
	var served sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { as.serve(conn) })
		}
	})
	return listener.Addr().String()
}

// serve answers the requests on a connection until the client closes it.
func (a answer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
			_ = framer.WriteSettingsAck()
		}
		if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
			a.write(framer, data.StreamID)
		}
	}
}

func (a answer) write(framer *http2.Framer, stream uint32) {
	message, _ := proto.Marshal(&evaluator.EvaluateFunctionResponse{ResourceList: make([]byte, 60_000)})
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	headers := func(end bool, fields ...hpack.HeaderField) {
		var block writer
		encoder := hpack.NewEncoder(&block)
		for _, f := range fields {
			_ = encoder.WriteField(f)
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: block, EndHeaders: true, EndStream: end,
		})
	}
	headers(false, hpack.HeaderField{Name: ":status", Value: "200"},
		hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	for len(body) > 0 {
		n := min(a.size, len(body))
		if a.headers {
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 9999, BlockFragment: []byte{0x88}, EndHeaders: true})
		}
		if framer.WriteDataPadded(stream, false, body[:n], a.padding) != nil {
			return
		}
		body = body[n:]
	}
	headers(true, hpack.HeaderField{Name: "grpc-status", Value: "0"})
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
