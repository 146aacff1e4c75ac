// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// hostile is the image of the test function, run with an argument.
type hostile struct {
	images
	behaviour string
}

func (h *hostile) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{
		Digest: "sha256:testfn", Command: []string{"/fn/testfn", h.behaviour}, User: "1000:1000",
	}, nil
}

// startHostile returns a function that evaluates a behaviour in a sandbox, and returns the output or
// the error.
func startHostile(
	t *testing.T, change func(*gateway.Config),
) (run func(behaviour string) string, root, address string) {
	t.Helper()
	h := &hostile{images: newImages(t)}
	h.add(t, "testfn")
	address = startSandbox(t, h, 0, func(cfg *gateway.Config) {
		cfg.MaxTempBytes, cfg.Sandbox.MaxMemoryBytes, cfg.Sandbox.MaxProcesses = 8<<20, 256<<20, 100
		change(cfg)
	})
	return func(behaviour string) string {
		h.behaviour = behaviour
		return evaluateAt(t, address, "example.com/fn/testfn:v1")
	}, filepath.Join(h.dir, "testfn"), address
}

// evaluateAt returns the output of a function, or its error.
func evaluateAt(t *testing.T, address, image string) string {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(conformance.List)})
	if err != nil {
		return err.Error()
	}
	return string(resp.GetResourceList())
}

// TestHostileFunctions has functions attempt what none may do. docs/security.md has what they get.
func TestHostileFunctions(t *testing.T) {
	run, root, address := startHostile(t, func(*gateway.Config) {})
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "x")
	own := strconv.Itoa(os.Getpid())
	tests := map[string]struct{ behaviour, want string }{
		"passwords":            {"try=read:/etc/shadow", "no such file or directory"},
		"files of the machine": {"try=read:" + secret, "no such file or directory"},
		"another image":        {"try=list:" + filepath.Dir(root), "no such file or directory"},
		"its own image":        {"try=list:" + root, "no such file or directory"},
		"the first process":    {"try=read:/proc/1/root/etc/shadow", "no such file or directory"},
		"the runner":           {"try=list:/proc/" + own, "no such file or directory"},
		"the gateway":          {"try=socket:tcp," + address, "connection refused"},
		"the Internet":         {"try=socket:tcp,192.0.2.1:80", "network is unreachable"},
		"its root":             {"try=write:/x", "read-only file system"},
		"its program":          {"try=write:/fn/testfn", "read-only file system"},
		"devices":              {"try=write:/dev/x", "read-only file system"},
		"new devices":          {"try=device", "operation not permitted"},
		"kernel settings":      {"try=write:/proc/sys/kernel/hostname", "denied|read-only"},
		"mount":                {"try=mount:/tmp", "operation not permitted"},
		"chroot":               {"try=chroot:/tmp", "operation not permitted"},
		"namespaces":           {"try=unshare", "operation not permitted"},
		"more namespaces":      {"try=clone", "operation not permitted"},
		"trace":                {"try=ptrace:1", "operation not permitted"},
		"memory of others":     {"try=vm-read:1", "operation not permitted"},
		"kill":                 {"try=kill:" + own, "no such process"},
		"packets":              {"try=packets", "operation not permitted"},
		"kernel programs":      {"try=bpf", "operation not permitted"},
		"keys":                 {"try=keyring", "operation not permitted"},
		"io_uring":             {"try=io-uring", "function not implemented"},
		"full /tmp":            {"fill=300", "no space left on device"},
		"memory":               {"allocate=2000000000", "out of memory|cannot allocate memory"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(tc.behaviour)
			for alternative := range strings.SplitSeq(tc.want, "|") {
				if strings.Contains(got, alternative) {
					return
				}
			}
			t.Errorf("got %s, want %q", excerptOf(got), tc.want)
		})
	}
	if got := run("echo"); got != conformance.List {
		t.Errorf("afterwards a function returns %q", got)
	}
}

// TestForkBombLeavesOtherFunctionsAlone has a function take all processes that it can have, beside which
// another function runs, where the runner is root: other users have one bound for all sandboxes.
func TestForkBombLeavesOtherFunctionsAlone(t *testing.T) {
	run, _, address := startHostile(t, func(*gateway.Config) {})
	if got := run("try=fork:1000"); !strings.Contains(got, "resource temporarily unavailable") {
		t.Errorf("got %s, want an end", excerptOf(got))
	}
	if os.Getuid() != 0 {
		return
	}
	const begun = "fork/exec /fn/testfn: resource temporarily unavailable" // by the function, not by its launcher
	if got := evaluateAt(t, address, "example.com/fn/other:v1"); !strings.Contains(got, begun) {
		t.Errorf("another function got %s, want its own processes", excerptOf(got))
	}
}

func excerptOf(s string) string { return fmt.Sprintf("%.600s", s) }

// TestSandboxNetwork lists an image as one that may use the network.
func TestSandboxNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	run, _, _ := startHostile(t, func(cfg *gateway.Config) { cfg.FunctionNetwork = []string{"example.com/fn/*"} })
	if got := run("try=socket:tcp," + listener.Addr().String()); !strings.Contains(got, `message: "done"`) {
		t.Errorf("got %s, want a connection", excerptOf(got))
	}
}

// TestSandboxLeavesNothing has functions that keep running after their answer; newImages checks that
// none of their sandboxes is left.
func TestSandboxLeavesNothing(t *testing.T) {
	run, root, _ := startHostile(t, func(*gateway.Config) {})
	for _, behaviour := range []string{"orphan", "daemon", "daemons=5"} {
		if got := run(behaviour); got != conformance.List {
			t.Errorf("%s: got %s", behaviour, excerptOf(got))
		}
		expectNoSandbox(t, filepath.Dir(root))
	}
}
