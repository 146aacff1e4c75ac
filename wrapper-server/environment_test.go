// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// hostileEnv is the environment of an image that turns off what holds its function back, and has its server
// print and send what callers gave it.
var hostileEnv = []string{
	"FNR_CONFINE=off", "FNR_NETWORK=true", "FNR_TLS_ID=", "FNR_PORT=1",
	"GODEBUG=http2debug=2", "GOTRACEBACK=crash", "GOMEMLIMIT=1", "GOMAXPROCS=1000", "GOGC=1",
	"SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1",
	"OTEL_TRACES_EXPORTER=carrier-pigeon", "OTEL_METRICS_EXPORTER=carrier-pigeon", "OTEL_RESOURCE_ATTRIBUTES=a=b",
	"TMPDIR=/nowhere", "function:FNR_CONFINE=off", "isolated=1",
}

// TestAnImageDoesNotConfigureItsServer has hostile functions attempt what none may do in a server that starts as
// it does in a pod, with their image's environment.
func TestAnImageDoesNotConfigureItsServer(t *testing.T) {
	l := servetest.Listen(t)
	functions, others := t.TempDir(), t.TempDir()
	testfn.Install(t, functions, "testfn")
	for name, tc := range map[string]struct{ try, want string }{
		"a connection":   {"socket:tcp," + l.Addr().String(), "operation not permitted"},
		"a server":       {"listen:127.0.0.1:0", "operation not permitted"},
		"files":          {"write:" + filepath.Join(others, "x"), "permission denied"},
		"the server":     {"kill:parent", "operation not permitted"},
		"its memory":     {"vm-read:parent", "operation not permitted"},
		"its command":    {"ptrace:parent", "operation not permitted"},
		"namespaces":     {"unshare", "operation not permitted"},
		"kernel's rings": {"io-uring", "function not implemented"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // programs wait at their ends
			port := freeport.Choose(t)
			path := "PATH=" + os.Getenv("PATH") //nolint:forbidigo // for setpriv
			log := startProgram(t, append([]string{path}, hostileEnv...),
				"--telemetry-metrics-address=off", "--serve-drain-delay=0s", "--port="+port,
				"--", filepath.Join(functions, "testfn"), "try="+tc.try)
			if got := evaluate(t, port); !strings.Contains(string(got.GetResourceList()), tc.want) {
				t.Errorf("a function that attempts %s gets\n%s\nwant %s", tc.try, got.GetResourceList(), tc.want)
			}
			for _, unwanted := range []string{"http2:", "carrier-pigeon", "kind: ResourceList"} {
				if log := log(); strings.Contains(log, unwanted) {
					t.Errorf("the server's log has %q:\n%s", unwanted, log)
				}
			}
		})
	}
}

// TestFunctionsInheritNoDescriptors starts the program with ten descriptors of the root directory, and evaluates in a
// spare process and in one that starts for its evaluation.
func TestFunctionsInheritNoDescriptors(t *testing.T) {
	for range 10 {
		fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
	}
	functions := t.TempDir()
	testfn.Install(t, functions, "testfn")
	for _, prefork := range []string{"0", "1"} {
		for _, confined := range []string{"best-effort", "off"} {
			port := freeport.Choose(t)
			path := "PATH=" + os.Getenv("PATH") //nolint:forbidigo // for setpriv
			startProgram(t, []string{path}, "--telemetry-metrics-address=off", "--serve-drain-delay=0s", "--port="+port,
				"--prefork="+prefork, "--confine="+confined, "--", filepath.Join(functions, "testfn"), "try=descriptors")
			for range 2 {
				if got := string(evaluate(t, port).GetResourceList()); !strings.Contains(got, `message: "done"`) {
					t.Errorf("prefork %s, confine %s: got\n%s\nwant no descriptors", prefork, confined, got)
				}
			}
		}
	}
}
