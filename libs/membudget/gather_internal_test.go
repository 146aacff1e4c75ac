// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// message returns a request of gRPC with so many bytes, of which as many as sent says come.
func message(announced, sent int) []byte {
	b := make([]byte, prefixBytes, prefixBytes+sent)
	binary.BigEndian.PutUint32(b[1:], uint32(announced))
	for i := range sent {
		b = append(b, byte(i*7+i>>8))
	}
	return b
}

// TestLargeMessagesArriveWhole has messages of many sizes, in reads of many sizes.
func TestLargeMessagesArriveWhole(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"halves":        iotest.HalfReader,
		"end with data": iotest.DataErrReader,
	}
	const limit = 10 * pieceBytes
	for _, size := range []int{0, 1, pieceBytes, gatherFrom - 1, gatherFrom, gatherFrom + 1, 5*pieceBytes + 17, limit} {
		for name, reader := range readers {
			for _, cut := range []int{0, 1, pieceBytes} {
				sent := message(size, max(size-cut, 0))
				got, _, _ := through(t, limit, reader(bytes.NewReader(sent)))
				if !bytes.Equal(got, sent) {
					t.Errorf("%s, %d of %d bytes: got %d bytes, want %d", name, size-cut, size, len(got), len(sent))
				}
			}
		}
	}
}

// TestAMessageIsWholeBeforeItsStreamEnds has clients that send a message and keep their side of the stream open.
func TestAMessageIsWholeBeforeItsStreamEnds(t *testing.T) {
	for _, size := range []int{gatherFrom, gatherFrom + 1, 5*pieceBytes + 17, 6 * pieceBytes} {
		sent := message(size, size)
		more := readerFunc(func([]byte) (int, error) {
			t.Errorf("%d bytes: read on behind the message", size)
			return 0, io.EOF
		})
		handler := New(1<<30, time.Second, "FNR_TEST").Bounded(10*pieceBytes, nil,
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(r.Body, got); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%d bytes: not as they were sent: %v", size, err)
				}
				if left := len(r.Body.(*gatheredBody).pieces); left > 0 {
					t.Errorf("%d bytes: %d pieces are kept while the evaluation runs", size, left)
				}
			}))
		req := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(bytes.NewReader(sent), more))
		req.Header.Set("Content-Type", "application/grpc")
		handler.ServeHTTP(httptest.NewRecorder(), req)
	}
}

// TestABrokenUploadIsItsError has a connection break in the middle of a large message.
func TestABrokenUploadIsItsError(t *testing.T) {
	broken := errors.New("connection reset")
	sent := message(8*pieceBytes, 5*pieceBytes)
	_, _, err := through(t, 10*pieceBytes, io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestTooLargeMessagesAreNotGathered has a message that is read only to be thrown away.
func TestTooLargeMessagesAreNotGathered(t *testing.T) {
	sent := message(20*pieceBytes, 20*pieceBytes)
	if _, most, _ := through(t, 10*pieceBytes, bytes.NewReader(sent)); most > 0 {
		t.Errorf("%d pieces", most)
	}
}

// through returns what a handler behind a budget reads, the most pieces that there were, and its error.
func through(t *testing.T, limit int64, body io.Reader) (got []byte, most int, err error) {
	t.Helper()
	var gatheredBy *gatheredBody
	b := New(1<<30, time.Second, "FNR_TEST")
	handler := b.Bounded(limit, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		gatheredBy = r.Body.(*gatheredBody)
		buf := make([]byte, 1000)
		for err == nil {
			var n int
			n, err = r.Body.Read(buf)
			got, most = append(got, buf[:n]...), max(most, len(gatheredBy.pieces))
		}
		if len(gatheredBy.pieces) > 0 {
			t.Errorf("%d pieces are left behind the message", len(gatheredBy.pieces))
		}
	}))
	req := httptest.NewRequest(http.MethodPost, "/", body)
	req.Header.Set("Content-Type", "application/grpc")
	req.RemoteAddr = "192.0.2.1:1"
	handler.ServeHTTP(httptest.NewRecorder(), req)
	if b.Reserved() != 0 {
		t.Errorf("%d bytes are left", b.Reserved())
	}
	return got, most, err
}

// TestUploadsTakeTheirSize has 20 uploads stop shortly before their end, all in one process with what decodes them.
func TestUploadsTakeTheirSize(t *testing.T) {
	const uploads, size, sent = 20, 5_000_000, 4_500_000
	_, decoding := evaluatorconnect.NewFunctionEvaluatorHandler(evaluatorconnect.UnimplementedFunctionEvaluatorHandler{})
	handler := New(1<<30, time.Minute, "FNR_TEST").Bounded(size, nil, decoding)
	before, whole := heap(), message(size, sent)
	var stopped, ended sync.WaitGroup
	goOn := make(chan struct{})
	for i := range uploads {
		stopped.Add(1)
		pause := readerFunc(func([]byte) (int, error) {
			stopped.Done()
			<-goOn
			return 0, io.ErrUnexpectedEOF
		})
		req := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure,
			io.MultiReader(bytes.NewReader(whole), pause))
		req.ProtoMajor, req.RemoteAddr = 2, fmt.Sprintf("192.0.2.%d:1", i)
		req.Header.Set("Content-Type", "application/grpc")
		ended.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), req) })
	}
	stopped.Wait()
	taken := float64(heap()-before-len(whole)) / (uploads * sent)
	close(goOn)
	ended.Wait()
	if taken > 1.1 {
		t.Errorf("uploads take %.2f times what was sent of them", taken)
	}
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	runtime.GC() // what pools had before the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
