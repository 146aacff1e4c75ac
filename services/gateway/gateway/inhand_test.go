// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// kibibytes is a list of so many KiB.
func kibibytes(n int) []byte {
	const item = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
	return []byte("kind: ResourceList\nitems:\n" + strings.Repeat(item, n<<10/len(item)))
}

// TestMemoryIsBounded has a request use most of its address's share of a gateway's memory budget. Requests of the
// address that do not fit in addition wait and are evaluated later.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	address := startConfigured(t, gateway.Config{
		MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 2 << 20, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{Config: install(t, dir, "hang", "echo"), Functions: dir, Queue: 1000},
	})
	client := func(options ...connect.ClientOption) evaluatorconnect.FunctionEvaluatorClient {
		return clientFrom(t, "127.0.0.1", address, options...)
	}
	evaluate := func(
		ctx context.Context, client evaluatorconnect.FunctionEvaluatorClient, name string, list []byte,
	) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image(name), ResourceList: list})
			ended <- err
		}()
		return ended
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	hanging := evaluate(ctx, client(), "hang", kibibytes(1000))
	testfn.AwaitRunning(t, dir, 1)
	waiting := map[string]<-chan error{
		"Connect":  evaluate(t.Context(), client(), "echo", kibibytes(700)),
		"gRPC-Web": evaluate(t.Context(), client(connect.WithGRPCWeb()), "echo", kibibytes(700)),
	}
	// A request that is too large by itself waits like others, since its answer must say so.
	tooLarge := evaluate(t.Context(), client(connect.WithGRPCWeb()), "echo", kibibytes(1200))
	other := clientFrom(t, "127.0.0.2", address)
	for range 3 { // the others would be answered meanwhile if they did not wait
		if err := <-evaluate(t.Context(), other, "echo", kibibytes(700)); err != nil {
			t.Errorf("a request of another address fits: %v", err)
		}
	}
	for name, ended := range waiting {
		if len(ended) > 0 {
			t.Errorf("%s: got %v while both together are more than the memory budget", name, <-ended)
		}
	}
	status := gatewayv1connect.NewStatusServiceClient(clientAt(t, "127.0.0.2"), "http://"+address)
	await.Equal(t, "problems", func() string {
		now, err := status.GetStatus(t.Context(), &gatewayv1.GetStatusRequest{})
		return fmt.Sprint(now.GetProblems(), err)
	}, "[the memory budget is used up, 3 requests wait for it: raise FNR_MEMORY_BUDGET_BYTES] <nil>")
	leave()
	<-hanging
	for name, ended := range waiting {
		if err := <-ended; err != nil {
			t.Errorf("%s: %v, want to wait", name, err)
		}
	}
	if err := <-tooLarge; connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("too large: %v, want ResourceExhausted", err)
	}
}

// clientFrom returns a client of the gateway at an address that has an address of its own.
func clientFrom(
	t *testing.T, from, address string, options ...connect.ClientOption,
) evaluatorconnect.FunctionEvaluatorClient {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return evaluatorconnect.NewFunctionEvaluatorClient(&http.Client{Transport: transport}, "http://"+address, options...)
}

// TestCallersAreNotRefusedWhileMemoryIsFreed has 20 callers on one connection, as Porch is, send 6 MiB each, twice,
// within the deadline of a rendering and without retries. The gateway has the budget of a container of 512 MiB, half of
// what the manifests set: eight requests fit into an address's share.
func TestCallersAreNotRefusedWhileMemoryIsFreed(t *testing.T) {
	dir := t.TempDir()
	address := startConfigured(t, gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, MemoryBudgetBytes: 64 << 20,
		DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: install(t, dir, "echo"), Functions: dir, Queue: 1000, Settings: function.Settings{Concurrency: 2},
		},
	})
	porch := newCaller(t, address)
	const item = "kind: ResourceList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data:\n    a: "
	porch.list = []byte(item + strings.Repeat("x", conformance.MaxMessageBytes-len(item)-200))
	var longest atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				begin := time.Now()
				if err := porch.evaluateWithin(ctx, image("echo"), ""); err != nil {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
				cancel()
				for took := int64(time.Since(begin)); ; {
					if old := longest.Load(); took <= old || longest.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
	callers.Wait()
	t.Logf("the longest wait of 40 evaluations of 6 MiB: %v", time.Duration(longest.Load()).Round(time.Millisecond))
}
