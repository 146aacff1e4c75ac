// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestTermination sends SIGTERM to the real program while it evaluates: the caller gets the answer,
// and the program exits with code 0.
func TestTermination(t *testing.T) {
	dir := t.TempDir()
	functions := filepath.Join(dir, "functions")
	if err := os.Mkdir(functions, 0o700); err != nil {
		t.Fatal(err)
	}
	testfn.Install(t, functions, "sleep=500ms")
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("functions: [{function: 'sleep=500ms', images: ['sleep:v1']}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	port := freeport.Choose(t)
	program := startProgram(t, "--port="+port, "--disable-runtimes=pod", "--functions="+functions, "--config="+config)
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{},
		grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: "sleep:v1", ResourceList: []byte("kind: ResourceList\nitems: []\n")})
		answer <- err
	}()
	testfn.AwaitRunning(t, functions, 1)
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("the evaluation in flight got %v", err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// startProgram builds function-runner and starts it.
func startProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), gobuild.Program(t, ".", "."), args...)
	cmd.Env = append(cmd.Environ(), "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
