// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// images are images on disk, each with the test function of one behaviour as its program.
type images struct{ dir string }

// newImages makes a directory that sandboxes may use.
func newImages(t *testing.T) images {
	t.Helper()
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		expectNoSandbox(t, dir)
		_ = os.RemoveAll(dir)
	})
	share(t, dir)
	return images{dir}
}

// expectNoSandbox checks that no process is left of a sandbox whose image is in dir: its launcher has
// the path as an argument, and its functions have it as their root.
func expectNoSandbox(t *testing.T, dir string) {
	t.Helper()
	await.Equal(t, "sandboxes", func() string {
		var running []string
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, process := range processes {
			line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			mounts, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
			if strings.Contains(string(line), dir) || strings.Contains(string(mounts), filepath.Base(dir)+"/") {
				running = append(running, process+" "+string(line))
			}
		}
		return strings.Join(running, "\n")
	}, "")
}

// share lets all users enter a directory.
func share(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// add makes an image of the function of that behaviour.
func (i images) add(t *testing.T, behaviour string) {
	t.Helper()
	root := filepath.Join(i.dir, strings.ReplaceAll(behaviour, "=", "-"))
	for _, dir := range []string{".", "fn", "proc", "dev", "tmp", "sys", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		share(t, filepath.Join(root, dir))
	}
	for _, name := range []string{"resolv.conf", "hosts"} {
		write(t, filepath.Join(root, "etc", name), "")
	}
	path := conformance.Install(t, filepath.Join(root, "fn"), behaviour)
	if behaviour != conformance.Missing && behaviour != conformance.NotExecutable {
		share(t, path)
	}
}

// behaviours maps the names of images to behaviours.
func (i images) ResolveImage(
	_ context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(req.GetImage(), ":v1"), "example.com/fn/")
	entries, _ := filepath.Glob(filepath.Join(i.dir, name, "proc"))
	if !ok || len(entries) != 1 {
		return nil, fault.New(fault.Precondition, "manifest unknown")
	}
	program := "/fn/" + strings.NewReplacer("sleep-", "sleep=", "greet-", "greet=").Replace(name)
	return &imageresolverv1.ResolveImageResponse{
		Digest: "sha256:" + name, Command: []string{program}, User: "1000", Env: []string{"COLOUR=blue"},
	}, nil
}

func (images) ListTags(
	context.Context, *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	return nil, errors.New("no tags are listed")
}

func (i images) Open(_ context.Context, _, digest string, _ func(string)) (string, func(), error) {
	return filepath.Join(i.dir, strings.TrimPrefix(digest, "sha256:")), func() {}, nil
}

func (images) WhenFull(func()) {}

// sandboxImages are what the sandbox evaluator needs of images.
type sandboxImages interface {
	imageresolverv1connect.ImageResolverServiceClient
	Open(ctx context.Context, repository, digest string, phase func(string)) (string, func(), error)
	WhenFull(free func())
}

// startSandbox runs a gateway that has sandboxes only.
func startSandbox(t *testing.T, all sandboxImages, prefork int, change func(*gateway.Config)) (address string) {
	t.Helper()
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Queue: 1000, PreforkTotal: 40,
			Settings: function.Settings{Prefork: prefork},
		},
		Sandbox: gateway.SandboxConfig{Launcher: "bubblewrap", MaxMemoryBytes: 1 << 30, MaxProcesses: 1000},
	}
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		sandboxes, err := gateway.FindSandboxes(t.Context(), cfg, frame)
		if err != nil {
			return serve.Component{}, err
		}
		return gateway.New(cfg, gateway.Services{Sandboxes: sandboxes, ImageResolver: all, Images: all}, frame)
	})
}

// eachLauncher runs a test with each launcher that is installed. Bubblewrap is, and direct requires no program.
func eachLauncher(t *testing.T, test func(t *testing.T, launcher string)) {
	t.Helper()
	for _, launcher := range []string{"bubblewrap", "crun", "runc", "runsc", "direct"} {
		if _, err := exec.LookPath(launcher); err != nil && launcher != "bubblewrap" && launcher != "direct" {
			t.Logf("not tested: %s, which is not installed", launcher)
			continue
		}
		t.Run(launcher, func(t *testing.T) { test(t, launcher) })
	}
}

// TestSandboxConformance runs the suite on the sandbox evaluator, whose texts are those of Porch's
// wrapper server.
func TestSandboxConformance(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		for name, prefork := range map[string]int{"without prefork": 0, "with prefork": 2} {
			t.Run(name, func(t *testing.T) {
				all := newImages(t)
				for _, behaviour := range conformance.Behaviours() {
					all.add(t, behaviour)
				}
				address := startSandbox(t, all, prefork, func(cfg *gateway.Config) { cfg.Sandbox.Launcher = launcher })
				texts := conformance.PodTexts("")
				if launcher == "crun" || launcher == "runc" {
					texts.Signal = "" // see TestFunctionThatIsKilled
				}
				conformance.Run(t, conformance.Target{
					Serve: func(_ *testing.T, behaviour string) conformance.Function {
						return conformance.Function{Address: address, Image: image(behaviour)}
					},
					NamesFunctions: true, UnknownImage: codes.FailedPrecondition,
					Texts: texts, EvaluationsOnly: launcher != "bubblewrap" || prefork > 0,
				})
			})
		}
	})
}
