// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// TestProgramsBeginTheirLogsWithTheirVersions compares the first line of each program with its --version.
func TestProgramsBeginTheirLogsWithTheirVersions(t *testing.T) {
	const anyPort = "FNR_ADDRESS=127.0.0.1:0"
	for _, tc := range []struct {
		name, dir string
		args, env []string
	}{
		{"function-runner", ".", []string{"--port=" + freeport.Choose(t), "--disable-runtimes=pod"}, nil},
		{"gateway", "../gateway", nil, []string{anyPort, "FNR_DISABLE_RUNTIMES=pod"}},
		{"pod-manager", "../pod-manager", nil, []string{anyPort, "WRAPPER_SERVER_IMAGE=example.com/wrapper:v1"}},
		{"image-resolver", "../image-resolver", nil, []string{anyPort}},
		{"wrapper-server", "../../wrapper-server", []string{"--port=" + freeport.Choose(t), "--", "/bin/true"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			program := gobuild.Program(t, tc.dir, ".")
			version, err := exec.CommandContext(t.Context(), program, "--version").Output()
			if err != nil {
				t.Fatal(err)
			}
			first := firstLine(t, tc.env, program, tc.args...)
			var line struct{ Service, Msg, Version string }
			if err := json.Unmarshal([]byte(first), &line); err != nil {
				t.Fatalf("the log begins with %q: %v", first, err)
			}
			if line.Msg != "starting" || line.Service != tc.name || !strings.HasSuffix(string(version), " "+line.Version+"\n") {
				t.Errorf("the log of %q begins with %s", version, first)
			}
		})
	}
}

// firstLine starts a program and returns the first line of its log.
func firstLine(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.Concat(env, []string{"FNR_TELEMETRY_METRICS_ADDRESS=off"})
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(log)
	first, err := lines.ReadString('\n')
	stop()
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait() // it was killed
	if err != nil || !strings.HasPrefix(first, "{") {
		t.Fatalf("the log begins with %q, %v:\n%s", first, err, rest)
	}
	return first
}
