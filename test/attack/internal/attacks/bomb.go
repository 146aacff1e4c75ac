// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// unknownField is a field number that no Protobuf message of our services defines.
const unknownField = 15

// healthBomb sends a compressed health check of about 1 MB. Decompressed, it exceeds the program's memory limit.
var healthBomb = Attack{
	Name: "gzip bomb to health", Programs: every, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.sendBombs(ctx, healthPath, 1200<<20, 1) },
}

// reflectionBomb sends a compressed reflection request. Decompressed, it exceeds the program's memory limit.
var reflectionBomb = Attack{
	Name: "gzip bomb to reflection", Programs: every,
	Run: func(ctx context.Context, t *Target) error { return t.sendBombs(ctx, reflectionPath, 1200<<20, 1) },
}

// manyBombs sends hundreds of concurrent evaluations. Decompression expands each from some kilobytes to 5 MiB.
var manyBombs = Attack{
	Name: "600 compressed requests", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.sendBombs(ctx, evaluatePath, 5<<20, 600) },
}

// sendBombs sends n concurrent compressed requests, each with an unknown field of size bytes. It ignores the
// answers, because the program may reject the requests.
func (t *Target) sendBombs(ctx context.Context, path string, size, n int) error {
	message, err := compressBomb(size)
	if err != nil {
		return err
	}
	t.postRepeatedly(ctx, path, wire.Envelope(message, true, len(message)), n, "Grpc-Encoding", "gzip")
	return nil
}

// compressBomb returns a compressed message with an unknown field. The argument is the size of this field in bytes.
func compressBomb(size int) ([]byte, error) {
	var message bytes.Buffer
	w, err := gzip.NewWriterLevel(&message, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	header := protowire.AppendTag(nil, unknownField, protowire.BytesType)
	header = protowire.AppendVarint(header, uint64(size))
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= len(zeros) {
		if _, err := w.Write(zeros[:min(left, len(zeros))]); err != nil {
			return nil, err
		}
	}
	return message.Bytes(), w.Close()
}

// postRepeatedly sends n concurrent requests over ten connections, and waits for the answers until ctx ends. header
// lists additional headers as alternating names and values.
func (t *Target) postRepeatedly(ctx context.Context, path string, body []byte, n int, header ...string) {
	const connections = 10
	var clients [connections]*http.Client
	for i := range clients {
		clients[i] = t.newClient()
		defer clients[i].CloseIdleConnections()
	}
	_ = runAll(n, func(i int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.Address+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Te", "trailers")
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return discardAnswer(clients[i%connections], req)
	})
}

// discardAnswer sends a request and reads the whole answer.
func discardAnswer(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
