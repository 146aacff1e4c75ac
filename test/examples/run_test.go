// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script is the script of `make run` and `make demo`, relative to this directory.
const script = "../../examples/run.sh"

// install creates a directory like that of `make build`, with scripts as programs: a
// function-runner that ends after the given commands, a probe that finds a healthy server after that, and a fnctl
// that leaves a file when it runs.
func install(t *testing.T, runner string) (build, used string) {
	t.Helper()
	build = t.TempDir()
	used = filepath.Join(build, "used")
	bin, pid := filepath.Join(build, "bin"), filepath.Join(build, "pid")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"function-runner": "echo $$ >" + pid + "\n" + runner + "\nexit 1",
		"wrapper-server":  "until test -s " + pid + " && ! kill -0 $(cat " + pid + ") 2>/dev/null; do sleep 0.01; done",
		"fnctl":           "touch " + used,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+content+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return build, used
}

// TestExamplesServeOnLoopback runs the examples in an environment that has another address: anyone who reaches the
// port may run functions on this machine.
func TestExamplesServeOnLoopback(t *testing.T) {
	build, _ := install(t, `echo "the runner's address is '$FNR_ADDRESS', its arguments $*"`)
	run := exec.CommandContext(t.Context(), script)
	run.Env = append(run.Environ(), "BUILD="+build, "PORT=", "FNR_ADDRESS=:9445")
	out, _ := run.CombinedOutput()
	if !strings.Contains(string(out), "the runner's address is 'localhost:") || strings.Contains(string(out), "--port") {
		t.Errorf("want an address on loopback, and no flag that overrides it:\n%s", out)
	}
}

// TestAnotherRunnerIsNotTakenForOurs runs another server at function-runner's address: the examples
// must not be rendered by it.
func TestAnotherRunnerIsNotTakenForOurs(t *testing.T) {
	other, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	_, port, _ := net.SplitHostPort(other.Addr().String())
	for name, test := range map[string]struct {
		reason string
		args   []string
		port   string
		want   string
	}{
		"run":          {"the port is taken", []string{"--keep"}, port, "port " + port + " is taken"},
		"demo on port": {"the port is taken", nil, port, "port " + port + " is taken"},
		"demo": {
			"function-runner has ended, and another server answers", nil, "",
			"function-runner did not start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			build, used := install(t, "")
			run := exec.CommandContext(t.Context(), script, test.args...)
			run.Env = append(run.Environ(), "BUILD="+build, "PORT="+test.port)
			out, err := run.CombinedOutput()
			if run.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), test.want) {
				t.Errorf("it ends with %v, want exit status 1 and %q, since %s:\n%s", err, test.want, test.reason, out)
			}
			if _, err := os.Stat(used); err == nil {
				t.Error("something was rendered nevertheless")
			}
		})
	}
}
