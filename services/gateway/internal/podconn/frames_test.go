// SPDX-License-Identifier: Apache-2.0

package podconn_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

// TestAnswersInSmallFramesAreRejected has pods that answer with 60,000 bytes in frames of one byte, which would take
// megabytes of memory, and in larger ones.
func TestAnswersInSmallFramesAreRejected(t *testing.T) {
	for size, want := range map[int]codes.Code{
		1: codes.Unavailable, 10: codes.Unavailable, 256: codes.OK, 16000: codes.OK,
	} {
		address := serveFrames(t, size) // ends after the pool has closed its connection
		pool := newPoolOf(t, podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20})
		conn := get(t, pool, podconn.Pod{UID: "pod", Address: address})
		if err := conn.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := conn.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{Image: "fn"})
		if got := status.Code(err); got != want {
			t.Errorf("frames of %d bytes: %v, want %v", size, err, want)
		}
		conn.Release(false)
	}
}

// serveFrames serves one connection, whose first request is answered in frames of a size.
func serveFrames(t *testing.T, size int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-served })
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
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
				answerInFrames(framer, data.StreamID, size)
			}
		}
	}()
	return listener.Addr().String()
}

func answerInFrames(framer *http2.Framer, stream uint32, size int) {
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
		n := min(size, len(body))
		if framer.WriteData(stream, false, body[:n]) != nil {
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
