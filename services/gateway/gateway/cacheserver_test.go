// SPDX-License-Identifier: Apache-2.0

//go:build redis

package gateway_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/cachetest"
)

// sharing returns the settings of gateways that share a server. Their own caches hold maxBytes.
func sharing(tb testing.TB, server *cachetest.Server, maxBytes int64) gateway.ResultCacheConfig {
	tb.Helper()
	key := filepath.Join(tb.TempDir(), "key")
	if err := os.WriteFile(key, bytes.Repeat([]byte("k"), 32), 0o600); err != nil {
		tb.Fatal(err)
	}
	return gateway.ResultCacheConfig{
		MaxBytes: maxBytes, Server: server.URL, KeyFile: key, PasswordFile: server.PasswordFile, CAFile: server.CAFile,
		TTL: time.Hour,
	}
}

// evaluated evaluates an input, and returns how the cache was used.
func evaluated(tb testing.TB, client evaluator.FunctionEvaluatorClient, list string) (cache string) {
	tb.Helper()
	var header metadata.MD
	resp, err := client.EvaluateFunction(tb.Context(), &evaluator.EvaluateFunctionRequest{
		Image: "example.com/fn/set:v1", ResourceList: []byte(list),
	}, grpc.Header(&header))
	if err != nil {
		tb.Fatal(err)
	}
	if string(resp.GetResourceList()) != list || string(resp.GetLog()) != "done" {
		tb.Errorf("output of %d bytes, log %q", len(resp.GetResourceList()), resp.GetLog())
	}
	return strings.Join(header.Get("fn-cache"), " ")
}

// awaitShared evaluates inputs at one gateway until another one gets such a result from the server.
func awaitShared(t *testing.T, first, second evaluator.FunctionEvaluatorClient, input string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // the breaker opens on a busy machine
	for i := 0; ; i++ {
		list := resourceList(1) + "# " + input + strconv.Itoa(i) + "\n"
		evaluated(t, first, list)
		if cache := evaluated(t, second, list); cache == "server" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the gateways share nothing")
		}
	}
}

// TestCacheServerIsSharedByGateways has two gateways, and a server that restarts, hangs, and gets another
// password: evaluations succeed all the time.
func TestCacheServerIsSharedByGateways(t *testing.T) {
	server := cachetest.Start(t)
	cfg := sharing(t, server, 32<<20)
	one, _ := startRememberingAs(t, 1<<20, cfg)
	other, _ := startRememberingAs(t, 1<<20, cfg)
	first, second := newCaller(t, one).client, newCaller(t, other).client
	awaitShared(t, first, second, "begin")
	server.SetPassword(t, "second")
	server.Restart(t)
	awaitShared(t, first, second, "restarted")
	server.Hang(t)
	for i := range 5 {
		if cache := evaluated(t, second, resourceList(1)+"# hangs "+strconv.Itoa(i)+"\n"); cache != "miss" {
			t.Errorf("the server hangs, and the header is %q", cache)
		}
	}
	server.Resume(t)
	awaitShared(t, first, second, "resumed")
}

// BenchmarkCacheServerHit is an evaluation of 200 resources that the server has, and the gateway itself has not.
func BenchmarkCacheServerHit(b *testing.B) {
	server := cachetest.Start(b)
	address, calls := startRememberingAs(b, 6<<20, sharing(b, server, 1))
	client := newCaller(b, address).client
	for deadline := time.Now().Add(30 * time.Second); evaluated(b, client, resourceList(200)) != "server"; {
		if time.Now().After(deadline) {
			b.Fatal("the server has no result")
		}
	}
	calls.Store(1)
	benchmarkHit(b, address, calls)
}
