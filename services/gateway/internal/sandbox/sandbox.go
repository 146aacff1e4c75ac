// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts functions of images in sandboxes of this machine, by a launcher that needs no
// privileges and no daemon: bubblewrap, or a runtime of the Open Container Initiative. Where neither works, the launcher
// direct starts static executables in place, with fewer restrictions.
//
// A function gets user, pid, mount, ipc, uts, network and cgroup namespaces of its own, the image as a
// read-only root, private /tmp and /dev/shm of bounded size, a minimal /dev, its own /proc, no
// capability and a seccomp filter. docs/security.md has what each launcher holds back.
package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"hash/maphash"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// Unprivileged is the group as which sandboxes run where this program runs as root, and the user and
// group in the sandbox for images that name none or root.
const Unprivileged = 65532

// defaultTemp is what a function may have in /tmp where nothing else is configured, in bytes.
const defaultTemp = 256 << 20

// advice is what to do about a launcher that fails.
const advice = "allow unprivileged user namespaces (sysctl user.max_user_namespaces, " +
	"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or "

// Config is what sandboxes get.
type Config struct {
	// Launcher is what FNR_SANDBOX may be: [Names].
	Launcher string
	// Required makes it an error that auto finds no launcher.
	Required bool
	// MaxMemory bounds the private memory of each process, MaxTemp each of /tmp and /dev/shm, in bytes. MaxProcesses is
	// how many processes a sandbox may have; with bubblewrap, the sandboxes of a function together where this program is
	// root.
	MaxMemory, MaxTemp, MaxProcesses int64
	// Env is what functions have beside the environment of their images, which counts more, as KEY=value.
	Env []string
	Log *slog.Logger
}

// Launcher starts sandboxes.
type Launcher struct {
	cfg     Config
	starter starter
	path    string   // of the launcher
	root    bool     // this program runs as root, and sandboxes must not
	file    *os.File // nil, or what the launcher reads
	starts  *fnproc.Starter
	seed    maphash.Seed // of functions' users
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
		cfg.Log.InfoContext(ctx, "functions run in sandboxes", "launcher", l.path, "skipped", skipped)
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
	return &Launcher{
		cfg: cfg, path: path, root: os.Getuid() == 0, starts: fnproc.NewStarter(), seed: maphash.MakeSeed(),
	}
}

// String returns what starts sandboxes, for users.
func (l *Launcher) String() string {
	if l.Direct() {
		return "direct: Landlock, seccomp and limits, but no namespaces"
	}
	return l.path
}

// Direct reports whether functions run in place, confined by their runner.
func (l *Launcher) Direct() bool {
	_, direct := l.starter.(*direct)
	return direct
}

// Command returns the command that starts a function in a sandbox, or why the launcher cannot start it. To make it takes
// a while: callers keep it.
//
// The processes of a sandbox end with the launcher: the first one in its pid namespace stays in the
// launcher's process group, which is killed as a whole. The launcher ends with this program, and that process with it.
func (l *Launcher) Command(fn Function) (fnproc.Command, *fnproc.StartError) {
	fn.Env = slices.Concat(l.cfg.Env, fn.Env)
	cmd, err := l.starter.command(fn)
	if err != nil {
		return fnproc.Command{}, err
	}
	cmd.Launch.Name = fn.Name
	if !cmd.Launch.Direct {
		cmd.Dir = "/"
		cmd.Launch.User, cmd.Launch.Group = l.userOf(fn.Name), Unprivileged
		cmd.Launch.Starter = l.starts
	}
	all := slices.Concat(cmd.Launch.Arguments, []byte(strings.Join(cmd.Args, "\x00")))
	sum := sha256.Sum256(all) // the arguments of a runtime have 40 KB
	cmd.Launch.Key, cmd.Launch.Advice = string(sum[:]), advice+"choose another launcher with FNR_SANDBOX"
	return cmd, nil
}

// Close frees what the launcher has. No sandbox may be started any more.
func (l *Launcher) Close() error {
	if l == nil {
		return nil
	}
	l.starts.Close()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
