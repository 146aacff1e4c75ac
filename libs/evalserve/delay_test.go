// SPDX-License-Identifier: Apache-2.0

package evalserve_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// BenchmarkRoundTrip has lists of 6 MB go to a server of ours and none come back, over networks with several times
// of a round trip. It reports the shortest time: what the windows of HTTP/2 cost is the difference to no delay.
func BenchmarkRoundTrip(b *testing.B) {
	for _, windows := range []serve.Windows{serve.DefaultWindows, {Request: 512 << 10, Connection: serve.MaxWindow}} {
		address := servetest.Start(b, func(servermain.Frame) (serve.Component, error) {
			mux := http.NewServeMux()
			mux.Handle(evalserve.NewHandler(config(silent, 7<<20)))
			return serve.Component{Endpoints: []serve.Endpoint{{Name: "evaluator", Handler: mux, Windows: windows}}}, nil
		})
		for _, delay := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond} {
			b.Run(fmt.Sprintf("window=%d/delay=%v", windows.Request, delay), func(b *testing.B) {
				upload(b, delayed(b, address, delay/2))
			})
		}
	}
}

// silent answers nothing.
func silent(*evaluator.EvaluateFunctionRequest) *evaluator.EvaluateFunctionResponse {
	return new(evaluator.EvaluateFunctionResponse)
}

// upload sends lists to address, and reports the shortest time that one takes.
func upload(b *testing.B, address string) {
	b.Helper()
	conn := servetest.Dial(b, address)
	client, shortest := evaluator.NewFunctionEvaluatorClient(conn), time.Hour
	sent := &evaluator.EvaluateFunctionRequest{ResourceList: list(6_000_000)}
	for b.Loop() {
		start := time.Now()
		if _, err := client.EvaluateFunction(b.Context(), sent); err != nil {
			b.Fatal(err)
		}
		shortest = min(shortest, time.Since(start))
	}
	b.ReportMetric(float64(shortest.Microseconds())/1000, "shortest-ms")
	b.ReportMetric(0, "ns/op")
}

// delayed returns the address of a proxy that takes delay for each direction.
func delayed(b *testing.B, target string, delay time.Duration) string {
	b.Helper()
	listener := servetest.Listen(b)
	var running sync.WaitGroup
	b.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				b.Error(err)
				return
			}
			running.Go(func() { pass(near, far, delay) })
			running.Go(func() { pass(far, near, delay) })
		}
	})
	return listener.Addr().String()
}

// pass copies what is read from one connection to another, each piece when it is delay old.
func pass(to, from net.Conn, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			pieces <- piece{buf[:n], time.Now().Add(delay)}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			_, _ = io.Copy(io.Discard, from)
		}
	}
	_ = to.Close()
}
