// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// findSecrets is a function that looks for its server's secrets, and leaves a process behind.
const findSecrets = `cat
for file in environ maps fd/0; do
  head -c 1 /proc/$PPID/$file && echo "$file can be read"
done
tr '\0' '\n' < /proc/$PPID/environ
env
setsid sh -c 'sleep 600 > /dev/null 2>&1 &'`

// TestAFunctionFindsNoSecrets runs the program as a container runs it, without
// capabilities.
func TestAFunctionFindsNoSecrets(t *testing.T) {
	const secret = "Bearer of-a-collector"
	port := freeport.Choose(t)
	log := startProgram(t, []string{
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=" + secret,
		"PATH=" + os.Getenv("PATH"), //nolint:forbidigo // where the shell's programs are
	}, "--telemetry-metrics-address=off", "--serve-drain-delay=0s", "--environment=OTEL_EXPORTER_OTLP_HEADERS",
		"--port", port, "--", "sh", "-c", "("+findSecrets+") 1>&2 && printf 'kind: ResourceList\n'")

	resp := evaluate(t, port)
	found := string(resp.GetLog())
	readable := strings.Contains(found, secret) || strings.Contains(found, "can be read")
	if readable || !strings.Contains(found, "Permission denied") {
		t.Errorf("a function finds:\n%s", found)
	}
	// What the server does with /proc itself still works.
	for wait := time.Millisecond; !strings.Contains(log(), "killing an orphan of a function"); wait *= 2 {
		if wait > time.Minute {
			t.Fatalf("an orphan is left:\n%s", log())
		}
		<-time.After(wait)
	}
}

// evaluate evaluates an empty list by the server at a port, when that serves.
func evaluate(t *testing.T, port string) *evaluator.EvaluateFunctionResponse {
	t.Helper()
	conn := servetest.Dial(t, "127.0.0.1:"+port)
	req := &evaluator.EvaluateFunctionRequest{Image: "fn", ResourceList: []byte("kind: ResourceList\n")}
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(), req, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// startProgram runs the program until the test ends, and returns what shows its log.
func startProgram(t *testing.T, env []string, args ...string) (log func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "wrapper-server") // see TestMain
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	command := append([]string{program}, args...)
	if os.Getuid() == 0 {
		command = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all"}, command...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = env
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with: %v", err)
		}
	})
	return func() string {
		content, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}
