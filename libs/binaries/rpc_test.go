// SPDX-License-Identifier: Apache-2.0

package binaries_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// dial returns a client of a source that is served until the context stopping is done.
func dial(stopping context.Context, t *testing.T, source binaries.Source) *binaries.Client {
	t.Helper()
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: podmanagerv1connect.BinaryServiceName, Streams: true,
			MaxRequestBytes: binaries.MaxRequestBytes, MaxResponseBytes: binaries.MaxResponseBytes,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				handler := binaries.Handler(func() context.Context { return stopping }, source)
				return podmanagerv1connect.NewBinaryServiceHandler(handler, options...)
			},
		})
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "pod-manager", Handler: handler}}}, nil
	})
	client, err := rpcclient.New("http://"+address, nil, telemetry.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return binaries.NewClient(client.HTTP, "http://"+address, client.Options...)
}

// images returns so many names of images.
func images(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("example.com/fn:v%d", i)
	}
	return all
}

func TestWatchOverRPC(t *testing.T) {
	prefork := 0
	lists := [][]binaries.Binary{
		{
			{Config: "a", Path: "fn", Images: []string{"example.com/fn:v1"}, Prefork: &prefork},
			{Config: "b", Path: "/bin/fn", Images: images(3)},
		},
		nil,
		{{Config: "large", Path: "fn", Images: images(12_000)}},
	}
	board := binaries.NewBoard(func(binaries.Problems) { t.Error("problems are reported") })
	board.Put(lists[0])
	stopping, stop := context.WithCancel(t.Context())
	client := dial(stopping, t, board)
	n := 0
	err := client.Watch(t.Context(), func(list []binaries.Binary) binaries.Problems {
		total := 0
		for _, b := range list {
			total += len(b.Images)
		}
		want := 0
		for _, b := range lists[n] {
			want += len(b.Images)
		}
		if total != want {
			t.Errorf("list %d has %d images, want %d", n, total, want)
		}
		if diff := cmp.Diff(lists[n], list); n < 2 && diff != "" {
			t.Errorf("list %d (-want, +got):\n%s", n, diff)
		}
		if n++; n < len(lists) {
			board.Put(lists[n])
		} else {
			stop()
		}
		return nil
	})
	if n != len(lists) || fault.Of(err) != fault.Unavailable {
		t.Errorf("got %d lists, then %v; want %d, then that the server is shutting down", n, err, len(lists))
	}
}

// TestProblemsOverRPC has a watch in another process report problems, which count until they change
// or the watch ends.
func TestProblemsOverRPC(t *testing.T) {
	reports := make(chan binaries.Problems, 100)
	board := binaries.NewBoard(func(p binaries.Problems) { reports <- p })
	client := dial(t.Context(), t, board)
	ctx, cancel := context.WithCancel(t.Context())
	many := binaries.Problems{}
	for i := range 2000 {
		many[fmt.Sprintf("fn%04d", i)] = strings.Repeat("x", 5000)
	}
	found := map[string]binaries.Problems{"a": {"a": "missing"}, "none": {}, "many": many}
	ended := make(chan error)
	go func() {
		ended <- client.Watch(ctx, func(list []binaries.Binary) binaries.Problems { return found[list[0].Config] })
	}()
	// await waits for a report. Between two watches there is none, or that of both.
	await := func(want string, holds func(binaries.Problems) bool) {
		t.Helper()
		for {
			select {
			case p := <-reports:
				if holds(p) {
					return
				}
			case <-ended:
				t.Fatalf("the watch has ended before it reported %s", want)
			}
		}
	}
	put := func(config string) {
		board.Put([]binaries.Binary{{Config: config, Path: "fn", Images: images(1)}})
	}
	put("a")
	await("the problem", func(p binaries.Problems) bool { return len(p) == 1 && p["a"] == "gateway: missing" })
	put("none")
	await("that there is none", func(p binaries.Problems) bool { return p != nil && len(p) == 0 })
	put("many")
	await("some", func(p binaries.Problems) bool { return len(p) == 1000 && len(p["fn0000"]) < 600 })
	cancel()
	<-ended
	for p := range reports {
		if p == nil {
			return
		}
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	board := binaries.NewBoard(func(binaries.Problems) {})
	client := dial(t.Context(), t, board)
	board.Put(nil)
	ctx, cancel := context.WithCancel(t.Context())
	if err := client.Watch(ctx, func([]binaries.Binary) binaries.Problems { cancel(); return nil }); err == nil {
		t.Error("the watch ended without an error")
	}
}

func TestAListIsBounded(t *testing.T) {
	board := binaries.NewBoard(func(binaries.Problems) {})
	board.Put([]binaries.Binary{{Config: "a", Path: "fn", Images: images(200_001)}})
	err := dial(t.Context(), t, board).Watch(t.Context(), func([]binaries.Binary) binaries.Problems {
		t.Error("it is used")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "more than 200000 images") {
		t.Errorf("Watch = %v", err)
	}
}
