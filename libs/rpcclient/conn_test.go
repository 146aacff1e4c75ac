// SPDX-License-Identifier: Apache-2.0

package rpcclient_test

import (
	"io"
	"net"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// TestBrokenConnectionsAreUnavailable has servers that break each connection at some time. The caller has not left:
// Canceled would tell it that it had.
func TestBrokenConnectionsAreUnavailable(t *testing.T) {
	for name, read := range map[string]int64{"at once": 0, "during the request": 100, "after the preface": 24} {
		t.Run(name, func(t *testing.T) {
			listener := servetest.Listen(t)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = io.CopyN(io.Discard, conn, read)
					_ = conn.(*net.TCPConn).SetLinger(0) // the client gets a reset
					_ = conn.Close()
				}
			}()
			defer func() { <-ended }()
			defer func() { _ = listener.Close() }()
			url := "http://" + listener.Addr().String()
			c, err := rpcclient.New(url, nil, telemetry.Discard())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			client := evaluatorconnect.NewFunctionEvaluatorClient(c.HTTP, url, c.Options...)
			for range 20 {
				_, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
					ResourceList: make([]byte, 1<<20),
				})
				if connect.CodeOf(err) != connect.CodeUnavailable {
					t.Fatalf("got %v, want unavailable", err)
				}
			}
		})
	}
}
