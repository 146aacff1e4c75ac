// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package sandbox_test

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// eachLauncher calls test with what runs a function by each launcher, with the files of this machine if it names none.
func eachLauncher(
	t *testing.T, test func(t *testing.T, run func(fn sandbox.Function) (fnproc.Outcome, error)),
) {
	t.Helper()
	for name, program := range map[string]string{"bubblewrap": "bwrap", "crun": "crun", "runc": "runc", "runsc": "runsc"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			l := find(t, name)
			test(t, func(fn sandbox.Function) (fnproc.Outcome, error) {
				fn.Name = "fn@x"
				fn.Root = cmp.Or(fn.Root, "/")
				cmd, _ := l.Command(fn)
				cmd.MaxOutput, cmd.MaxLog = 1<<10, 1<<14
				return fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
			})
		})
	}
}

// TestWorkingDirectories has images that start in directories where the sandbox has files of its own.
func TestWorkingDirectories(t *testing.T) {
	eachLauncher(t, func(t *testing.T, run func(fn sandbox.Function) (fnproc.Outcome, error)) {
		for _, dir := range []string{"/", "/tmp", "/tmp/a/b", "/usr"} {
			out, err := run(sandbox.Function{Program: []string{"/bin/pwd"}, Dir: dir})
			if err != nil || strings.TrimSpace(string(out.Output)) != dir {
				t.Errorf("%s: %q, %v: %s", dir, out.Output, err, out.Log)
			}
		}
	})
}

// TestImagesThatCannotStart has images that no sandbox can start, which is no failure of the launcher.
func TestImagesThatCannotStart(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for name, tc := range map[string]struct {
		fn   sandbox.Function
		want string
	}{
		"directory": {
			sandbox.Function{Program: []string{"/bin/pwd"}, Dir: "/proc/x"}, "the image's working directory",
		},
		"environment": {
			sandbox.Function{Program: []string{"/bin/pwd"}, Dir: "/", Env: []string{"A=" + long}}, "are too long",
		},
		"arguments": {sandbox.Function{Program: []string{"/bin/pwd", long}, Dir: "/"}, "are too long"},
		"program":   {sandbox.Function{Program: []string{"/tmp/fn"}, Dir: "/"}, "the image lacks the interpreter"},
	} {
		t.Run(name, func(t *testing.T) {
			eachLauncher(t, func(t *testing.T, run func(fn sandbox.Function) (fnproc.Outcome, error)) {
				out, err := run(tc.fn)
				if _, ofImage := errors.AsType[*fnproc.StartError](err); !ofImage || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, %s %q, want an error of the image that says %q", err, out.Status, out.Log, tc.want)
				}
			})
		})
	}
}

// TestLinksOfAnImageLeadNowhere has images with links in place of /etc or of files in /etc. The links lead to where
// bubblewrap keeps the machine's files while it creates a sandbox. A function with network gets files at these places.
func TestLinksOfAnImageLeadNowhere(t *testing.T) {
	eachLauncher(t, func(t *testing.T, run func(fn sandbox.Function) (fnproc.Outcome, error)) {
		for _, links := range [][]string{{"etc"}, {"etc/resolv.conf", "etc/hosts"}} {
			outside, root := t.TempDir(), t.TempDir()
			share(t, outside)
			share(t, root)
			if err := os.Chmod(outside, 0o777); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"proc", "dev", "tmp", filepath.Dir(links[0])} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, link := range links {
				target := filepath.Join("/oldroot", outside, strings.TrimPrefix(link, "etc"))
				if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = run(sandbox.Function{Root: root, Program: []string{"/none"}, Dir: "/", Network: true})
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("links %v: %v was written to the machine, %v", links, entries, err)
			}
		}
	})
}
