// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// kibibytes is a list of so many KiB.
func kibibytes(n int) []byte {
	const item = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
	return []byte("kind: ResourceList\nitems:\n" + strings.Repeat(item, n<<10/len(item)))
}

// startBounded runs a gateway with a memory budget of one request of the largest size, and
// the functions hang and echo, in the directory that it returns. Each has so many evaluations
// at a time; zero is the default.
func startBounded(t *testing.T, concurrency int) (address, dir string) {
	t.Helper()
	dir = t.TempDir()
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20,
		DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: install(t, dir, "hang", "echo"), Functions: dir, Queue: 1000,
			Settings: function.Settings{Concurrency: concurrency},
		},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return startConfigured(t, cfg), dir
}

// TestMemoryIsBounded has a caller whose request takes most of a gateway's memory budget,
// and others that come meanwhile.
func TestMemoryIsBounded(t *testing.T) {
	address, dir := startBounded(t, 0)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := func(options ...connect.ClientOption) evaluatorconnect.FunctionEvaluatorClient {
		return evaluatorconnect.NewFunctionEvaluatorClient(&http.Client{Transport: transport}, "http://"+address, options...)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error)
	go func() {
		_, err := client().EvaluateFunction(ctx,
			&evaluator.EvaluateFunctionRequest{Image: image("hang"), ResourceList: kibibytes(700)})
		left <- err
	}()
	testfn.AwaitRunning(t, dir, 1)
	for name, tc := range map[string]struct {
		client evaluatorconnect.FunctionEvaluatorClient
		list   []byte
		want   connect.Code
		reason string
	}{
		"Connect": {
			client(), kibibytes(700), connect.CodeResourceExhausted,
			"both together are more than the memory budget",
		},
		"gRPC-Web": {
			client(connect.WithGRPCWeb()), kibibytes(700), connect.CodeResourceExhausted,
			"nor do other protocols make them smaller",
		},
		"too large": {
			client(connect.WithGRPCWeb()), kibibytes(1200), connect.CodeResourceExhausted,
			"a request that is too large by itself is too large first",
		},
		"small": {
			client(), []byte(conformance.List), 0,
			"a small request fits beside the large one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.client.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: image("echo"), ResourceList: tc.list})
			if err != nil && connect.CodeOf(err) != tc.want || err == nil && tc.want != 0 {
				t.Errorf("got %v, want %v: %s", err, tc.want, tc.reason)
			}
			if tc.want != 0 && name != "too large" && !strings.Contains(err.Error(), "try again later") {
				t.Errorf("got %v, which does not say what to do", err)
			}
		})
	}
	leave()
	<-left
	largest := newCaller(t, address)
	largest.list = kibibytes(1000)
	largest.await(t, image("echo"), codes.OK) // the first reservation ends a moment later
}
