// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestFunctionConfigs has binaries by FunctionConfigs, which change while functions run.
func TestFunctionConfigs(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	conformance.Install(t, dir, "echo")
	conformance.Install(t, dir, "hang")
	write(t, file, "functions: []")
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: file, Functions: dir, Queue: 1000,
		},
	}
	reports := make(chan binaries.Problems, 10)
	board := binaries.NewBoard(func(p binaries.Problems) { reports <- p })
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return gateway.New(cfg, gateway.Services{Binaries: board}, frame)
	})
	c := newCaller(t, address)
	put := func(list ...binaries.Binary) binaries.Problems {
		board.Put(list)
		return <-reports
	}
	both := func(tag string) []binaries.Binary {
		return []binaries.Binary{
			{Config: "echo", Path: "echo", Images: []string{"example.com/fn/echo:" + tag}},
			{Config: "hang", Path: filepath.Join(dir, "hang"), Images: []string{"example.com/fn/hang:" + tag}},
		}
	}

	if problems := put(both("v1.2.3")...); len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	if err := c.evaluate(t, "echo:v1.2.3", ""); err != nil {
		t.Error(err)
	}
	if err := c.evaluate(t, "echo", "^1.0"); err != nil {
		t.Errorf("with a version constraint: %v", err)
	}

	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.evaluateWithin(ctx, "hang:v1.2.3", "") }()
	testfn.AwaitRunning(t, dir, 1)
	put(both("v2.0.0")[0])
	for image, want := range map[string]codes.Code{
		"hang:v1.2.3": codes.NotFound,
		"echo:v1.2.3": codes.NotFound,
		"echo:v2.0.0": codes.OK,
	} {
		if err := c.evaluate(t, image, ""); status.Code(err) != want {
			t.Errorf("after the change, %s: %v, want %v", image, err, want)
		}
	}
	testfn.AwaitRunning(t, dir, 1)
	leave()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the evaluation that ran meanwhile: %v, want that it was cancelled", err)
	}

	missing := binaries.Binary{Config: "missing", Path: "missing", Images: []string{"example.com/fn/echo:v3"}}
	if problems := put(missing); problems["missing"] == "" {
		t.Error("no problem is reported of a binary that is not there")
	}
}
