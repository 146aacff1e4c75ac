// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs functions of images in sandboxes on this machine. A launcher is usually a program that starts
// sandboxes without privileges and without a daemon: bubblewrap, or an OCI runtime such as crun. If no such program
// works, the launcher "direct" starts static executables without namespaces, and with fewer restrictions.
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

// Unprivileged is the ID of a user and of a group. A function runs as this user and group within its sandbox if its
// image specifies root or no user. If this program runs as root, this is also the group of all sandboxes.
const Unprivileged = 65532

// defaultTemp is the default size limit of /tmp and of /dev/shm in a sandbox, in bytes.
const defaultTemp = 256 << 20

// advice is a part of error messages. It names the system settings that users can change to permit sandboxes.
const advice = "allow unprivileged user namespaces (sysctl user.max_user_namespaces, " +
	"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or "

// Config configures a Launcher.
type Config struct {
	// Launcher selects the program that starts sandboxes. It is the value of the setting FNR_SANDBOX, see [Names].
	Launcher string
	// Required makes [Find] return an error if no launcher works, even with FNR_SANDBOX=auto.
	Required bool
	// MaxMemory limits the private memory of each process, in bytes. MaxTemp limits the sizes of /tmp and of /dev/shm, in
	// bytes each. MaxProcesses limits the processes of a sandbox. If this program runs as root, all bubblewrap sandboxes
	// of a function share MaxProcesses.
	MaxMemory, MaxTemp, MaxProcesses int64
	// Env contains variables for all functions, as KEY=value. The variables of a function's image take precedence.
	Env []string
	Log *slog.Logger
}

// Launcher starts sandboxes.
type Launcher struct {
	cfg     Config
	starter starter
	path    string   // path of the launcher's program; empty for the launcher "direct"
	root    bool     // true if this program runs as root, so that sandboxes need another user
	file    *os.File // in-memory file with bubblewrap's seccomp filter, or nil
	starts  *fnproc.Starter
	seed    maphash.Seed // seed of the random assignment of users to functions
}

// Find returns the launcher that FNR_SANDBOX selects, after a test with a first sandbox. If sandboxes are off, it
// returns nil and no error. If no launcher works, Find returns an error. However, if FNR_SANDBOX is auto and
// cfg.Required is false, Find only logs this error, and returns nil and no error.
func Find(ctx context.Context, cfg Config) (*Launcher, error) {
	if cfg.Launcher == "" || cfg.Launcher == Off {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	l, skipped, err := findLauncher(ctx, cfg)
	switch {
	case err == nil:
		cfg.Log.InfoContext(ctx, "functions run in sandboxes", "launcher", l.String(), "skipped", skipped)
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

// String returns the path of the launcher's program, or a description if the launcher is "direct".
func (l *Launcher) String() string {
	if l.Direct() {
		return "direct: Landlock, seccomp and limits, but no namespaces"
	}
	return l.path
}

// Direct reports whether functions run without namespaces. Callers must then restrict the functions themselves.
func (l *Launcher) Direct() bool {
	_, direct := l.starter.(*direct)
	return direct
}

// Command returns the command that starts a function, or an error if the launcher cannot start the function. Callers
// should reuse the command, because creating it takes long. When the launcher exits, all processes of its sandbox exit
// too. The same happens if the launcher's process group is killed or this program exits: the first process of the pid
// namespace exits, and the kernel then kills all other processes of the namespace.
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

// Close releases the launcher's files. Callers must start no sandboxes afterwards.
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
