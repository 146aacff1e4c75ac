// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
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
	t *testing.T, launcher string, change func(*gateway.Config),
) (run func(behaviour string) string, root, address string) {
	t.Helper()
	h := &hostile{images: newImages(t)}
	h.add(t, "testfn")
	address = startSandbox(t, h, 0, func(cfg *gateway.Config) {
		cfg.Sandbox.Launcher = launcher
		cfg.MaxTempBytes = 8 << 20
		cfg.Sandbox.MaxMemoryBytes = 256 << 20
		cfg.Sandbox.MaxProcesses = 100
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
	conn := servetest.Dial(t, address)
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(conformance.List)})
	if err != nil {
		return err.Error()
	}
	return string(resp.GetResourceList())
}

// attempt is what a hostile function attempts, and a part of what it gets, of alternatives with a bar between
// them: with bubblewrap, and with those launchers by which it gets something else.
type attempt struct {
	behaviour, want string
	by              map[string]string
}

// gvisor is what functions get by runsc, which has a kernel of its own for each sandbox.
func gvisor(want string) map[string]string { return map[string]string{"runsc": want} }

// itself is what functions get about the first process of their pid namespace by launchers with which they are that.
func itself(want string) map[string]string {
	return map[string]string{"crun": want, "runc": want, "runsc": want + "|no such file or directory"}
}

// readOnly is what functions get by runsc that write to their root: it depends on whether they own it.
const readOnly = "permission denied|read-only file system"

// attempts are what none may do. docs/security-tests.md lists the results of the launcher direct.
func attempts(root, secret, address string) map[string]attempt {
	own := strconv.Itoa(os.Getpid())
	const missing = "no such file or directory"
	return map[string]attempt{
		"passwords":            {"try=read:/etc/shadow", "no such file or directory", nil},
		"files of the machine": {"try=read:" + secret, "no such file or directory", nil},
		"another image":        {"try=list:" + filepath.Dir(root), "no such file or directory", nil},
		"its own image":        {"try=list:" + root, "no such file or directory", nil},
		"the first process":    {"try=read:/proc/1/root/etc/shadow", "no such file or directory", nil},
		"the first one's memory": {
			"try=read:/proc/1/mem", "no such file or directory", itself("input/output error"),
		},
		"the runner":        {"try=list:/proc/" + own, "no such file or directory", nil},
		"the gateway":       {"try=socket:tcp," + address, "connection refused", nil},
		"the Internet":      {"try=socket:tcp,192.0.2.1:80", "network is unreachable", gvisor("no route to host")},
		"its root":          {"try=write:/x", "read-only file system", gvisor(readOnly)},
		"its program":       {"try=write:/fn/testfn", "read-only file system", gvisor(readOnly)},
		"devices":           {"try=write:/dev/x", "read-only file system", nil},
		"terminals":         {"try=reopen:/dev/ptmx", missing, gvisor(missing + "|permission denied")},
		"a set-uid program": {"try=set-uid", "operation not permitted", nil},
		"new devices":       {"try=device", "operation not permitted", gvisor("done")},
		"kernel settings":   {"try=write:/proc/sys/kernel/hostname", "denied|read-only", nil},
		"mount":             {"try=mount:/tmp", "operation not permitted", nil},
		"chroot":            {"try=chroot:/tmp", "operation not permitted", nil},
		"namespaces":        {"try=unshare", "operation not permitted", nil},
		"more namespaces":   {"try=clone", "operation not permitted", nil},
		"trace":             {"try=ptrace:1", "operation not permitted", nil},
		"memory of others":  {"try=vm-read:1", "operation not permitted", nil},
		"kill":              {"try=kill:" + own, "no such process", nil},
		"packets":           {"try=packets", "operation not permitted", nil},
		"kernel programs":   {"try=bpf", "operation not permitted", nil},
		"keys":              {"try=keyring", "operation not permitted", nil},
		"io_uring":          {"try=io-uring", "function not implemented", gvisor("operation not permitted")},
		"many files": {
			"try=empty-files:1000000", "no space left on device|more than the 100000 files of /tmp",
			gvisor("done|no space left"),
		},
		"full /tmp": {"fill=300", "no space left on device", nil},
		"memory": { // Go's garbage collector may be the first to get none, which it does not check everywhere
			"allocate=2000000000", "out of memory|cannot allocate memory|segmentation violation",
			gvisor("kind: ResourceList"),
		},
	}
}

// TestHostileFunctions has functions attempt what none may do, by each launcher.
func TestHostileFunctions(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "x")
	eachLauncher(t, func(t *testing.T, launcher string) {
		run, root, address := startHostile(t, launcher, func(*gateway.Config) {})
		for name, tc := range attempts(root, secret, address) {
			t.Run(name, func(t *testing.T) {
				want := cmp.Or(tc.by[launcher], tc.want)
				if launcher == "direct" {
					want = directResult(t, name)
				}
				got := run(tc.behaviour)
				for alternative := range strings.SplitSeq(want, "|") {
					if strings.Contains(got, alternative) {
						return
					}
				}
				t.Errorf("got %s, want %q", excerptOf(got), want)
			})
		}
		if got := run("echo"); got != conformance.List {
			t.Errorf("afterwards a function returns %q", got)
		}
	})
}

// directResults contains a line for each attempt: its name and what a function gets by the launcher direct.
//
//go:embed testdata/direct.txt
var directResults string

// directResult returns what a function gets by the launcher direct for an attempt.
func directResult(t *testing.T, attempt string) string {
	t.Helper()
	_, line, _ := strings.Cut("\n"+directResults, "\n"+attempt+": ")
	result, _, _ := strings.Cut(line, "\n")
	if result == "" {
		t.Fatalf("testdata/direct.txt has no line for %q", attempt)
	}
	return strings.ReplaceAll(result, " or ", "|")
}

// TestForkBombLeavesOtherFunctionsAlone has a function take all processes that it can have, beside which
// another function runs, where the runner is root or each sandbox has a bound: with bubblewrap, the sandboxes
// of any other user have one bound.
func TestForkBombLeavesOtherFunctionsAlone(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		if launcher == "direct" && os.Getuid() == 0 {
			return // the kernel bounds no processes of root
		}
		run, _, address := startHostile(t, launcher, func(*gateway.Config) {})
		if got := run("try=fork:1000"); !strings.Contains(got, "resource temporarily unavailable") {
			t.Errorf("got %s, want an end", excerptOf(got))
		}
		if os.Getuid() != 0 && (launcher == "bubblewrap" || launcher == "direct") {
			return
		}
		const begun = "fork/exec /fn/testfn: resource temporarily unavailable" // by the function, not by its launcher
		if got := evaluateAt(t, address, "example.com/fn/other:v1"); !strings.Contains(got, begun) {
			t.Errorf("another function got %s, want its own processes", excerptOf(got))
		}
	})
}

func excerptOf(s string) string { return fmt.Sprintf("%.600s", s) }

// TestSandboxNetwork lists an image as one that may use the network.
func TestSandboxNetwork(t *testing.T) {
	listener := servetest.Listen(t)
	eachLauncher(t, func(t *testing.T, launcher string) {
		if launcher == "runsc" {
			t.Log("not tested: Debian's runsc of 2022 starts no function with a network here")
			return
		}
		run, _, _ := startHostile(t, launcher, func(cfg *gateway.Config) {
			cfg.FunctionNetwork = []string{"example.com/fn/*"}
		})
		if got := run("try=socket:tcp," + listener.Addr().String()); !strings.Contains(got, `message: "done"`) {
			t.Errorf("got %s, want a connection", excerptOf(got))
		}
	})
}

// TestSandboxLeavesNothing has functions that keep running after their answer; newImages checks that
// none of their sandboxes is left.
func TestSandboxLeavesNothing(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		run, root, _ := startHostile(t, launcher, func(*gateway.Config) {})
		for _, behaviour := range []string{"orphan", "daemon", "daemon=5"} {
			if got := run(behaviour); got != conformance.List {
				t.Errorf("%s: got %s", behaviour, excerptOf(got))
			}
			expectNoSandbox(t, filepath.Dir(root))
		}
	})
}

// TestFunctionThatIsKilled kills functions from outside. With a runtime of the Open Container Initiative, a
// function is the first process of its pid namespace, which no signal from the inside ends.
func TestFunctionThatIsKilled(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		run, root, _ := startHostile(t, launcher, func(*gateway.Config) {})
		if launcher == "runsc" || launcher == "direct" {
			if got := run("signal"); !strings.Contains(got, "signal: killed") {
				t.Errorf("got %s, want the signal", excerptOf(got))
			}
			return // its functions are no processes of the machine, or have no mounts by which they are found
		}
		answer := make(chan string)
		go func() { answer <- run("hang") }()
		killFunction(t, root)
		if got := <-answer; !strings.Contains(got, "signal: killed") {
			t.Errorf("got %s, want the signal", excerptOf(got))
		}
	})
}

// killFunction kills the function that runs with this root.
func killFunction(t *testing.T, root string) {
	t.Helper()
	pid := awaitFunction(t, filepath.Join(filepath.Base(filepath.Dir(root)), filepath.Base(root))+" / ")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// awaitFunction waits for a function that runs in a sandbox, with this text in the list of its mounts, and returns its
// pid.
func awaitFunction(t *testing.T, mount string) (pid int) {
	t.Helper()
	await.Equal(t, "the function runs", func() bool {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, process := range processes {
			line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			mounts, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
			var err error
			pid, err = strconv.Atoi(filepath.Base(process))
			if err == nil && strings.Contains(string(mounts), mount) && strings.HasPrefix(string(line), "/fn/testfn\x00") {
				return true
			}
		}
		return false
	}, true)
	return pid
}
