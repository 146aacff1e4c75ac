// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts functions of images in sandboxes of this machine. Its launchers need no privileges and no
// daemon: bubblewrap, or a runtime of the Open Container Initiative. Where neither works, the launcher direct starts
// static executables in place, with fewer restrictions.
//
// A function gets its own user, pid, mount, ipc, uts, network and cgroup namespaces, the image as a read-only root,
// private /tmp and /dev/shm of limited size, a minimal /dev, its own /proc, no capability and a seccomp filter.
// docs/security.md lists the restrictions of each launcher.
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

// Unprivileged is the group of all sandboxes if this program runs as root. Within a sandbox, it is also the user and
// group of functions whose images specify no user, or root.
const Unprivileged = 65532

// defaultTemp is the default of Config.MaxTemp, in bytes.
const defaultTemp = 256 << 20

// advice begins the remedy in errors of a launcher that fails.
const advice = "allow unprivileged user namespaces (sysctl user.max_user_namespaces, " +
	"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or "

// Config configures a Launcher.
type Config struct {
	// Launcher is the value of FNR_SANDBOX: [Names].
	Launcher string
	// Required is true if auto must find a launcher. Otherwise it is no error if no launcher works.
	Required bool
	// MaxMemory limits the private memory of each process, in bytes. MaxTemp limits each of /tmp and /dev/shm, in
	// bytes. MaxProcesses limits the processes of a sandbox. If this program runs as root, all bubblewrap sandboxes
	// of a function share this limit.
	MaxMemory, MaxTemp, MaxProcesses int64
	// Env is added to the environments of images, as KEY=value. Variables of images take precedence.
	Env []string
	Log *slog.Logger
}

// Launcher starts sandboxes.
type Launcher struct {
	cfg     Config
	starter starter
	path    string   // path of the launcher's program; empty for direct
	root    bool     // true if this program runs as root, so that sandboxes need another user
	file    *os.File // in-memory file with bubblewrap's seccomp program, or nil
	starts  *fnproc.Starter
	seed    maphash.Seed // seed of the random assignment of users to functions
}

// Find returns the configured launcher after a successful trial. If no launcher works, and FNR_SANDBOX is auto and a
// launcher is not required, Find logs the reasons and returns nil.
func Find(ctx context.Context, cfg Config) (*Launcher, error) {
	if cfg.Launcher == "" || cfg.Launcher == Off {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	l, skipped, err := findLauncher(ctx, cfg)
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

// String returns the name of the launcher, such as "bubblewrap".
func (l *Launcher) String() string {
	if l.Direct() {
		return "direct: Landlock, seccomp and limits, but no namespaces"
	}
	return l.path
}

// Direct reports whether the launcher is direct: functions run without namespaces, and this program confines them.
func (l *Launcher) Direct() bool {
	_, direct := l.starter.(*direct)
	return direct
}

// Command returns the command that starts a function in a sandbox, or an error if the launcher cannot start the
// function. Callers should reuse the command, because creating it is slow.
//
// All processes of a sandbox exit together with the launcher. The first process in the sandbox's pid namespace is in
// the launcher's process group, which is killed as a whole, and the kernel then kills the rest of the namespace. If
// this program exits, the launcher exits too, and with it the first process.
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
	sum := sha256.Sum256(all) // a hash, because the arguments of an OCI runtime are about 40 KB
	cmd.Launch.Key = string(sum[:])
	cmd.Launch.Advice = advice + "choose another launcher with FNR_SANDBOX"
	return cmd, nil
}

// Close releases the launcher's files. No sandbox may be started afterwards.
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
