// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// caller calls one gateway.
type caller struct {
	client evaluator.FunctionEvaluatorClient
	list   []byte
}

func newCaller(t testing.TB, address string) caller {
	t.Helper()
	conn := servetest.Dial(t, address,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(conformance.MaxMessageBytes)))
	return caller{evaluator.NewFunctionEvaluatorClient(conn), []byte(conformance.List)}
}

// evaluate evaluates image, with a tag, over the caller's list.
func (c caller) evaluate(t *testing.T, image, tag string) error {
	t.Helper()
	return c.evaluateWithin(t.Context(), image, tag)
}

// evaluateWithin does so until ctx ends.
func (c caller) evaluateWithin(ctx context.Context, image, tag string) error {
	_, err := c.client.EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, Tag: tag, ResourceList: c.list})
	return err
}

// await calls until the code is want, since a changed file takes a moment.
func (c caller) await(t *testing.T, image string, want codes.Code) {
	t.Helper()
	await.Equal(t, image, func() codes.Code { return status.Code(c.evaluate(t, image, "")) }, want)
}

func TestConfigurationIsFollowed(t *testing.T) {
	address, file := start(t, "echo")
	c := newCaller(t, address)
	if err := c.evaluate(t, "new:v1", ""); status.Code(err) != codes.NotFound {
		t.Fatalf("error %v before the change, want NotFound", err)
	}
	write(t, file, "functions: [{function: echo, images: ['new:v1']}]")
	c.await(t, "new:v1", codes.OK)

	// A broken file changes nothing; what comes after it does.
	write(t, file, "functions: [{function: ../echo, images: ['bad:v1']}]")
	if err := c.evaluate(t, "new:v1", ""); err != nil {
		t.Errorf("with a broken file: %v, want the last good one", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	write(t, file, "functions: [{function: echo, images: ['newer:v1']}]")
	c.await(t, "newer:v1", codes.OK)
	c.await(t, "new:v1", codes.NotFound)
}

func TestTags(t *testing.T) {
	address, file := start(t, "echo")
	write(t, file, "functions: [{function: echo, images: ['fn:v0.4.1', 'fn:v0.4.5', 'fn:v1.0.0']}]")
	c := newCaller(t, address)
	c.await(t, "fn:v0.4.1", codes.OK)
	tests := map[string]struct {
		image, tag string
		want       codes.Code
		text       string
	}{
		"constraint":        {"fn:v9", "~0.4", codes.OK, ""},
		"exact":             {"fn", "v1.0.0", codes.OK, ""},
		"exact, not served": {"fn", "v2.0.0", codes.NotFound, "fn:v2.0.0 (asked: exec)"},
		"no match":          {"fn", ">=2", codes.InvalidArgument, "no tag of example.com/fn/fn satisfies"},
		"malformed":         {"fn", "a b", codes.InvalidArgument, "neither a tag nor a version constraint"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			st := status.Convert(c.evaluate(t, tc.image, tc.tag))
			if st.Code() != tc.want || !strings.Contains(st.Message(), tc.text) {
				t.Errorf("got %v, want code %v and %q", st.Err(), tc.want, tc.text)
			}
		})
	}
}

func TestMissingConfigurationStopsTheStart(t *testing.T) {
	cfg := gateway.Config{
		MaxMessageBytes: 1 << 20,
		Exec:            gateway.ExecConfig{Config: filepath.Join(t.TempDir(), "none.yaml")},
	}
	_, err := gateway.New(cfg, gateway.Services{}, servermain.Frame{Telemetry: telemetry.Discard()})
	if err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("New = %v, want an error that names the file", err)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	pod := gateway.PodConfig{IdleTimeout: time.Minute}
	exec := gateway.ExecConfig{Config: "config.yaml", Functions: "functions"}
	good := gateway.Config{Address: ":1", MaxMessageBytes: 1 << 20, Exec: exec, Pod: pod}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*gateway.Config){
		"DefaultImagePrefix": func(c *gateway.Config) { c.DefaultImagePrefix = "ghcr.io/Kptdev" },
		"Exec.Config":        func(c *gateway.Config) { c.Exec.Config = "" },
		"Exec.Functions":     func(c *gateway.Config) { c.Exec.Functions = "" },
		"Address":            func(c *gateway.Config) { c.Address = "" },
		"DisableRuntimes":    func(c *gateway.Config) { c.DisableRuntimes = []string{"exec", "docker"} },
		"MemoryBudgetBytes":  func(c *gateway.Config) { c.MemoryBudgetBytes = 1<<20 - 1 },
		"MaxMessageBytes":    func(c *gateway.Config) { c.MaxMessageBytes = 10 },
		"Exec.Concurrency":   func(c *gateway.Config) { c.Exec.Concurrency = -1 },
		"Exec.Prefork":       func(c *gateway.Config) { c.Exec.Prefork = 65 },
		"ImageResolver":      func(c *gateway.Config) { c.ImageResolver = "image-resolver:9449" },
		"Pod.MaxRetries":     func(c *gateway.Config) { c.Pod.MaxRetries = -1 },
		"PodManager":         func(c *gateway.Config) { c.PodManager = "pod-manager:9448" },
	} {
		cfg := good
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want+" is ") {
			t.Errorf("Validate = %v, want an error that names %s", err, want)
		}
	}
}
