// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts functions of images in sandboxes of this machine, by a launcher:
// bubblewrap, which needs no privileges and no daemon.
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
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// What FNR_SANDBOX may be, beside the path of a launcher.
const (
	Auto       = "auto"
	Off        = "off"
	Bubblewrap = "bubblewrap"
)

// program is the name of bubblewrap's program.
const program = "bwrap"

// Unprivileged is the group as which sandboxes run where this program runs as root, and the user and
// group in the sandbox for images that name none or root.
const Unprivileged = 65532

// defaultTemp is what a function may have in /tmp where nothing else is configured, in bytes.
const defaultTemp = 256 << 20

// trialTimeout bounds the trial of a launcher at the start.
const trialTimeout = 10 * time.Second

// Config is what sandboxes get.
type Config struct {
	// Launcher is auto, off, bubblewrap, or the path of bubblewrap's program.
	Launcher string
	// Required makes it an error that auto finds no launcher.
	Required bool
	// MaxMemory bounds the private memory of each process, and MaxTemp each of /tmp and /dev/shm, in
	// bytes. MaxProcesses is how many processes the sandboxes of a function may have where this program
	// is root, and all sandboxes elsewhere.
	MaxMemory, MaxTemp, MaxProcesses int64
	Log                              *slog.Logger
}

// Check returns whether s is a value of FNR_SANDBOX.
func Check(s string) bool {
	return s == "" || s == Auto || s == Off || s == Bubblewrap || filepath.IsAbs(s)
}

// Launcher starts sandboxes.
type Launcher struct {
	cfg     Config
	path    string   // of bubblewrap
	limiter string   // the path of prlimit
	root    bool     // this program runs as root, and sandboxes must not
	file    *os.File // the seccomp program
	filter  string   // the path by which it is opened
}

// Find returns the launcher that the configuration chooses, after it has started a sandbox for a
// trial. With auto it returns nil if this machine has none that works, unless
// one is required: the log says why.
func Find(ctx context.Context, cfg Config) (*Launcher, error) {
	if cfg.Launcher == "" || cfg.Launcher == Off {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	l, err := find(ctx, cfg)
	switch {
	case err == nil:
		cfg.Log.InfoContext(ctx, "functions run in sandboxes", "launcher", l.path,
			"limits", "resource limits", "max_memory_bytes", cfg.MaxMemory, "max_processes", l.cfg.MaxProcesses)
		return l, nil
	case cfg.Launcher == Auto && !cfg.Required:
		cfg.Log.WarnContext(ctx, "no sandbox on this machine", "reason", err, "setting", "FNR_SANDBOX=auto")
		return nil, nil //nolint:nilnil // nil starts nothing
	default:
		return nil, err
	}
}

func find(ctx context.Context, cfg Config) (*Launcher, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("find the launcher of sandboxes: they need Linux, and this is %s: "+
			"set FNR_SANDBOX=off", runtime.GOOS)
	}
	name := program
	if filepath.IsAbs(cfg.Launcher) {
		name = cfg.Launcher
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("find the launcher of sandboxes: %w: install the package bubblewrap, or set FNR_SANDBOX", err)
	}
	limiter, err := exec.LookPath("prlimit")
	if err != nil {
		return nil, fmt.Errorf("find the program that limits sandboxes: %w: install the package util-linux", err)
	}
	cfg.MaxTemp = cmp.Or(cfg.MaxTemp, defaultTemp)
	l := &Launcher{cfg: cfg, path: path, limiter: limiter}
	if l.root = os.Getuid() == 0; !l.root {
		l.cfg.MaxProcesses += ownThreads()
	}
	if err := errors.Join(l.writeFilter(), l.try(ctx)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
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
	trial.SysProcAttr = credential(cmd.Launch)
	filter, err := os.Open(l.filter)
	if err != nil {
		return err
	}
	defer func() { _ = filter.Close() }()
	trial.ExtraFiles = []*os.File{filter}
	if out, err := trial.CombinedOutput(); err != nil {
		return fmt.Errorf("start a sandbox with %s: %w: %s: allow unprivileged user namespaces "+
			"(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or set FNR_SANDBOX=off",
			l.path, err, excerpt.Middle(strings.TrimSpace(string(out)), 300))
	}
	return nil
}
