// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package sandbox_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config returns a configuration with a launcher.
func config(launcher string) sandbox.Config {
	return sandbox.Config{
		Launcher: launcher, MaxMemory: 1 << 30, MaxTemp: 1 << 20, MaxProcesses: 100, Log: slog.New(slog.DiscardHandler),
	}
}

// find returns a launcher until the test ends.
func find(t *testing.T, name string) *sandbox.Launcher {
	t.Helper()
	l, err := sandbox.Find(t.Context(), config(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestChoiceOfTheLauncher(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no namespaces >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		choice string
		found  bool
		err    string
	}{
		"off":          {"off", false, ""},
		"default":      {"", false, ""},
		"auto":         {"auto", true, ""},
		"by name":      {"bubblewrap", true, ""},
		"by path":      {"/usr/bin/bwrap", true, ""},
		"another":      {"runc", true, ""},
		"missing runc": {"/nonexistent/runc-1.1", false, "install the package runc"},
		"missing path": {"/nonexistent/bwrap", false, "install the package bubblewrap"},
		"broken":       {broken, false, "set FNR_SANDBOX=off"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := sandbox.Find(t.Context(), config(tc.choice))
			if (l != nil) != tc.found || (err != nil) != (tc.err != "") ||
				(err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, %v, want found %v and error %q", l, err, tc.found, tc.err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAutoWithoutALauncher(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if l, err := sandbox.Find(t.Context(), config("auto")); l != nil || err != nil {
		t.Errorf("got %v, %v, want neither", l, err)
	}
	_, err := sandbox.Find(t.Context(), config("bubblewrap"))
	if err == nil || strings.Count(err.Error(), "install the package bubblewrap") != 1 {
		t.Errorf("error %v, want one that names the package of a launcher that was chosen by name, once", err)
	}
}

func TestSettingsOfTheLauncher(t *testing.T) {
	for value, want := range map[string]bool{
		"": true, "auto": true, "off": true, "bubblewrap": true, "/opt/bin/bwrap": true, "docker": false, "bin/bwrap": false,
		"crun": true, "runc": true, "runsc": true, "direct": true,
	} {
		if sandbox.Check(value) != want {
			t.Errorf("%q is accepted: %v, want %v", value, !want, want)
		}
	}
}

func TestCommand(t *testing.T) {
	l := find(t, "bubblewrap")
	fn := sandbox.Function{
		Name: "fn@x", Root: "/store/x", Program: []string{"/fn", "--", "a"}, Dir: "/srv",
		Env: []string{"A=b", "HOME=/h", "=", "c"},
	}
	arguments := func(fn sandbox.Function) string {
		cmd, _ := l.Command(fn)
		return strings.ReplaceAll(string(cmd.Launch.Arguments), "\x00", " ") + strings.Join(cmd.Args, " ")
	}
	args := arguments(fn)
	for _, want := range []string{
		"--unshare-user", "--unshare-net", "--ro-bind /store/x / ",
		"--size 1048576 --tmpfs /tmp",
		"--cap-drop ALL", "--seccomp 3", "--setenv A b", "--setenv HOME /h", "--chdir /srv --args 4 -- /fn -- a",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("no %q in %s", want, args)
		}
	}
	for user, want := range map[string]string{
		"": "--uid 65532 --gid 65532", "0": "--uid 65532 --gid 65532", "root": "--uid 65532 --gid 65532",
		"0:0": "--uid 65532 --gid 65532", "nonroot": "--uid 65532 --gid 65532", "-1": "--uid 65532 --gid 65532",
		"1000": "--uid 1000 --gid 1000", "1000:0": "--uid 1000 --gid 1000", "1000:2000": "--uid 1000 --gid 2000",
		"1000:users": "--uid 1000 --gid 1000",
	} {
		fn.User = user
		if args := arguments(fn); !strings.Contains(args, want) {
			t.Errorf("user %q: no %q in %s", user, want, args)
		}
	}
	fn.Network = true
	if strings.Contains(arguments(fn), "--unshare-net") {
		t.Error("a function that may use the network has none")
	}
	fn.Root = t.TempDir()
	err := errors.Join(os.Mkdir(fn.Root+"/etc", 0o755), os.WriteFile(fn.Root+"/etc/resolv.conf", nil, 0o644),
		os.Symlink("x", fn.Root+"/etc/hosts"))
	if err != nil {
		t.Fatal(err)
	}
	const bind = "--ro-bind-try /etc/resolv.conf /etc/resolv.conf "
	if args := arguments(fn); !strings.Contains(args, bind) || strings.Contains(args, "/etc/hosts") {
		t.Errorf("want %sand no mount on the image's link /etc/hosts, got %s", bind, args)
	}
}

// TestZeroBytesAddNoArguments has an image whose configuration has zero bytes, by which bubblewrap knows its arguments.
func TestZeroBytesAddNoArguments(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	share(t, filepath.Dir(secret))
	l := find(t, "bubblewrap")
	const bind = "\x00--bind\x00/\x00/tmp/machine"
	for _, fn := range []sandbox.Function{{Env: []string{"A=b" + bind}, Dir: "/"}, {Dir: "/" + bind}} {
		fn.Name = "fn@x"
		fn.Root = "/"
		fn.Program = []string{"/bin/cat", "/tmp/machine" + secret}
		cmd, _ := l.Command(fn)
		cmd.MaxOutput, cmd.MaxLog = 1<<10, 1<<10
		out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
		if err != nil || out.ExitCode != 1 || len(out.Output) > 0 {
			t.Errorf("%v, %s with %q, want a function that finds no file of the machine", err, out.Status, out.Output)
		}
	}
}

// TestLauncherThatReachesALimit starts a sandbox with a user that may have no process more than the launcher.
func TestLauncherThatReachesALimit(t *testing.T) {
	l := find(t, "bubblewrap")
	cmd, _ := l.Command(sandbox.Function{Name: "fn@x", Root: "/", Program: []string{"/bin/true"}, Dir: "/"})
	cmd.MaxOutput, cmd.MaxLog = 1<<10, 1<<10
	cmd.Launch.Limits = func() confine.Limits { return confine.Limits{Processes: 1} }
	_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if _, hint := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !hint {
		t.Errorf("got %v, want an error with a retry hint", err)
	}
}

// TestLaunchersThatFail has each launcher fail for reasons of its own, and execute what this machine cannot.
func TestLaunchersThatFail(t *testing.T) {
	root := t.TempDir()
	share(t, root)
	for _, dir := range []string{"proc", "dev", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "script"), []byte("#!/no-interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	eachLauncher(t, func(t *testing.T, run func(sandbox.Function) (fnproc.Outcome, error)) {
		script := sandbox.Function{Root: filepath.Join(root, "missing"), Program: []string{"/script"}, Dir: "/"}
		out, err := run(script)
		_, ofLauncher := errors.AsType[*fnproc.LaunchError](err)
		if !ofLauncher || fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "FNR_SANDBOX") {
			t.Errorf("without a root: %v, %+q, want an error of the launcher with its words", err, out.Log)
		}
		script.Root = root
		out, err = run(script)
		if _, ofLauncher := errors.AsType[*fnproc.LaunchError](err); ofLauncher || (err == nil && out.ExitCode == 0) {
			t.Errorf("no program: %v, %+q, want a failure of the image", err, out.Log)
		}
	})
}

// TestLauncherThatHangs has a launcher whose children keep its output open, and that never ends.
func TestLauncherThatHangs(t *testing.T) {
	hanging := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(hanging, []byte("#!/bin/sh\nsleep 1000 &\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	share(t, filepath.Dir(hanging))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := sandbox.Find(ctx, config(hanging)); l != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v, want an end", l, err)
	}
}

// share lets all users enter a temporary directory.
func share(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLimitsOfSandboxes looks at what runs in a sandbox of each launcher.
func TestLimitsOfSandboxes(t *testing.T) {
	for name, program := range map[string]string{"bubblewrap": "bwrap", "crun": "crun", "runc": "runc"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			l := find(t, name)
			cmd, _ := l.Command(sandbox.Function{
				Name: "fn@x", Root: "/", Program: []string{"/bin/cat", "/proc/self/limits", "/proc/self/oom_score_adj"}, Dir: "/",
			})
			cmd.MaxOutput, cmd.MaxLog = 1<<14, 1<<14
			out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
			if err != nil || out.ExitCode != 0 {
				t.Fatalf("%v, %v: %s", err, out.Status, out.Log)
			}
			have := strings.Join(strings.Fields(string(out.Output)), " ")
			for _, want := range []string{
				"Max core file size 1 1 ", "Max open files 4096 4096 ", "Max file size 1048576 1048576 ",
				"Max data size 1073741824 1073741824 ",
			} {
				if !strings.Contains(have, want) {
					t.Errorf("the limits are %s, want %s", have, want)
				}
			}
			if !strings.HasSuffix(have, " 1000") {
				t.Errorf("%s, want the score with which the kernel kills it first", have)
			}
		})
	}
}
