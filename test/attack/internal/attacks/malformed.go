// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"io"
	"time"

	"golang.org/x/net/http2"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// malformed sends many malformed requests, each on ten connections.
var malformed = Attack{
	Name: "malformed frames", Programs: every,
	Run: func(ctx context.Context, t *Target) error {
		junk := append(malformedFrames(), malformedTexts...)
		return runAll(10*len(junk), func(i int) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			conn, err := wire.Dial(ctx, t.Address)
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			defer func() { _ = conn.Close() }()
			_, _ = conn.Write(junk[i%len(junk)])
			_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
			return nil
		})
	},
}

// post is the beginning of an evaluation's HTTP/1 request.
const post = "POST " + evaluatePath + " HTTP/1.1\r\nHost: x\r\n"

// malformedTexts are malformed requests that do not consist of HTTP/2 frames.
var malformedTexts = [][]byte{
	[]byte("POST /evaluator"),
	[]byte(http2.ClientPreface + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
	[]byte(post + "Content-Length: -5\r\n\r\n"),
	[]byte(post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
	[]byte(post + "Content-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n\x00\xff\xff\xff\xff"),
	[]byte(post + "Content-Type: application/json\r\nContent-Length: 4000000000\r\n\r\n{"),
	[]byte(post + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"),
}

// malformedFrames returns HTTP/2 requests with forbidden frames or frames in a forbidden order.
func malformedFrames() [][]byte {
	return [][]byte{
		recordFrames(func(f *http2.Framer) { _ = f.WriteData(7, false, make([]byte, 100)) }),
		recordFrames(func(f *http2.Framer) { _ = f.WriteWindowUpdate(0, 1<<31-1) }),
		recordFrames(func(f *http2.Framer) { _ = f.WriteRawFrame(0x99, 0xff, 1, make([]byte, 1000)) }),
		recordFrames(func(f *http2.Framer) { _ = f.WriteContinuation(3, false, bytes.Repeat([]byte{0xff}, 100)) }),
		recordFrames(func(f *http2.Framer) {
			for range 5000 {
				_ = f.WriteSettings()
			}
		}),
		recordFrames(func(f *http2.Framer) {
			for i := range 5000 {
				_ = f.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
			}
		}),
		recordFrames(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			for range 2000 {
				_ = f.WriteContinuation(1, false, make([]byte, 100))
			}
		}),
	}
}

// recordFrames returns the bytes of an HTTP/2 connection: a valid beginning, and the frames that the callback adds.
func recordFrames(write func(f *http2.Framer)) []byte {
	out := bytes.NewBufferString(http2.ClientPreface)
	f := http2.NewFramer(out, nil)
	f.AllowIllegalWrites = true
	_ = f.WriteSettings()
	write(f)
	return out.Bytes()
}
