// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// inheritDescriptors opens ten descriptors on the root directory that programs inherit which this one starts, as it
// could have inherited them itself.
func inheritDescriptors(t *testing.T) {
	t.Helper()
	for range 10 {
		fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
	}
}

func TestSandboxInheritsNoDescriptors(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		inheritDescriptors(t)
		run, _, _ := startHostile(t, launcher, func(*gateway.Config) {})
		if got := run("try=descriptors"); !strings.Contains(got, `message: "done"`) {
			t.Errorf("got %s, want no descriptors", excerptOf(got))
		}
	})
}

// TestSandboxStandardStreamsCanBeOpenedAgain has a function open what it reads and writes by path, as many do.
func TestSandboxStandardStreamsCanBeOpenedAgain(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		run, _, _ := startHostile(t, launcher, func(cfg *gateway.Config) { cfg.Exec.Prefork = 2 })
		for _, path := range []string{"/dev/stdin", "/proc/self/fd/0", "/dev/stdout", "/dev/stderr"} {
			for range 3 { // some are spare processes
				if got := run("try=reopen:" + path); !strings.Contains(got, `message: "done"`) {
					t.Errorf("%s: got %s", path, excerptOf(got))
				}
			}
		}
	})
}

// elsewhere is an image with another working directory, or another program.
type elsewhere struct {
	images
	workingDir, program string
}

func (e *elsewhere) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{
		Digest: "sha256:echo", Command: []string{e.program}, WorkingDir: e.workingDir,
	}, nil
}

// TestSandboxStartsInItsImage has images whose working directory or program is in a file system of the kernel, where a
// path can lead out of the sandbox.
func TestSandboxStartsInItsImage(t *testing.T) {
	eachLauncher(t, func(t *testing.T, launcher string) {
		inheritDescriptors(t)
		all := &elsewhere{images: newImages(t)}
		all.add(t, "echo")
		root := all.dir + "/echo"
		if err := os.MkdirAll(root+"/proc/self/fd/9", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/proc/self/fd/9", root+"/link"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("proc/self/../self/fd/9/echo", root+"/program"); err != nil {
			t.Fatal(err)
		}
		write(t, root+"/proc/self/fd/9/echo", "#!/fn/echo\n")
		if err := os.Chmod(root+"/proc/self/fd/9/echo", 0o755); err != nil {
			t.Fatal(err)
		}
		address := startSandbox(t, all, 0, func(cfg *gateway.Config) { cfg.Sandbox.Launcher = launcher })
		for name, c := range map[string]struct{ dir, program, want string }{
			"the image": {"/fn", "/fn/echo", conformance.List},
			"a descriptor": {
				"/proc/self/fd/9", "/fn/echo",
				"/sys, which are the sandbox's own (the image's working directory is /proc/self/fd/9)",
			},
			"a directory of the kernel": {"/sys", "/fn/echo", "working directory is /sys"},
			"devices":                   {"dev/shm", "/fn/echo", "working directory is /dev/shm"},
			"a link":                    {"/link", "/fn/echo", "working directory is /link"},
			"a program of the kernel":   {"/", "/proc/self/fd/9/echo", "it is in /proc, /dev or /sys"},
			"a link to such a program":  {"/", "/program", "it is in /proc, /dev or /sys"},
		} {
			t.Run(name, func(t *testing.T) {
				all.workingDir = c.dir
				all.program = c.program
				if got := evaluateAt(t, address, "example.com/fn/echo:v1"); !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %q", excerptOf(got), c.want)
				}
			})
		}
	})
}
