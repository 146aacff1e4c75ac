// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts functions of images in sandboxes of this machine, by a launcher that needs no
// privileges and no daemon: bubblewrap, or a runtime of the Open Container Initiative.
//
// A function gets user, pid, mount, ipc, uts, network and cgroup namespaces of its own, the image as a
// read-only root, private /tmp and /dev/shm of bounded size, a minimal /dev, its own /proc, no
// capability and a seccomp filter. docs/security.md has what each launcher holds back.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// Unprivileged is the group as which sandboxes run where this program runs as root, and the user and
// group in the sandbox for images that name none or root.
const Unprivileged = 65532

// defaultTemp is what a function may have in /tmp where nothing else is configured, in bytes.
const defaultTemp = 256 << 20

// trialTimeout bounds the trial of a launcher at the start.
const trialTimeout = 10 * time.Second

// Config is what sandboxes get.
type Config struct {
	// Launcher is what FNR_SANDBOX may be: [Names].
	Launcher string
	// Required makes it an error that auto finds no launcher.
	Required bool
	// MaxMemory bounds the private memory of each process, and MaxTemp each of /tmp and /dev/shm, in
	// bytes. MaxProcesses is how many processes the sandboxes of a function may have where this program
	// is root, and all sandboxes elsewhere; with a runtime of the Open Container Initiative, each sandbox.
	MaxMemory, MaxTemp, MaxProcesses int64
	Log                              *slog.Logger
}

// Launcher starts sandboxes.
type Launcher struct {
	cfg     Config
	starter starter
	path    string   // of the launcher
	root    bool     // this program runs as root, and sandboxes must not
	file    *os.File // nil, or what the launcher reads
}

// Find returns the launcher that the configuration chooses, after it has started a sandbox for a
// trial. With auto it returns nil if this machine has none that works, unless
// one is required: the log says why.
func Find(ctx context.Context, cfg Config) (*Launcher, error) {
	if cfg.Launcher == "" || cfg.Launcher == Off {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	l, skipped, err := find(ctx, cfg)
	switch {
	case err == nil:
		cfg.Log.InfoContext(ctx, "functions run in sandboxes", "launcher", l.path, "limits", "resource limits",
			"max_memory_bytes", cfg.MaxMemory, "max_processes", l.cfg.MaxProcesses, "skipped", skipped)
		return l, nil
	case cfg.Launcher == Auto && !cfg.Required:
		cfg.Log.WarnContext(ctx, "no sandbox on this machine", "reason", err, "setting", "FNR_SANDBOX=auto")
		return nil, nil //nolint:nilnil // nil starts nothing
	default:
		return nil, err
	}
}

func newLauncher(cfg Config, path string) *Launcher {
	cfg.MaxTemp = cmp.Or(cfg.MaxTemp, defaultTemp)
	return &Launcher{cfg: cfg, path: path, root: os.Getuid() == 0}
}

// Command returns the command that starts a function in a sandbox.
//
// The processes of a sandbox end with the launcher: the first one in its pid namespace stays in the
// launcher's process group, which is killed as a whole.
func (l *Launcher) Command(fn Function) fnproc.Command {
	cmd := l.starter.command(fn)
	cmd.Dir = "/"
	cmd.Launch.Name, cmd.Launch.User, cmd.Launch.Group = fn.Name, l.userOf(fn.Name), Unprivileged
	return cmd
}

// Close frees what the launcher has. No sandbox may be started any more.
func (l *Launcher) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// try starts a sandbox that has this machine's files, which every machine has, and runs the launcher
// itself in it.
func (l *Launcher) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	cmd := l.Command(Function{Root: "/", Program: []string{l.path, "--version"}, Dir: "/"})
	trial := exec.CommandContext(ctx, cmd.Path, cmd.Args...)
	trial.Env, trial.Dir = []string{}, "/"
	trial.SysProcAttr = attributes(cmd.Launch)
	trial.Cancel = func() error { return syscall.Kill(-trial.Process.Pid, syscall.SIGKILL) } // the whole sandbox
	for _, path := range cmd.Launch.Files {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		trial.ExtraFiles = append(trial.ExtraFiles, file)
	}
	out, err := trial.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return fmt.Errorf("start a sandbox with %s: %w: %s: allow unprivileged user namespaces "+
		"(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or set FNR_SANDBOX=off",
		l.path, err, excerpt.Middle(strings.TrimSpace(string(out)), 300))
}
