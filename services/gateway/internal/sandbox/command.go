// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// Function is what to run in a sandbox.
type Function struct {
	// Name distinguishes it from other functions.
	Name string
	// Root is the directory with its root file system.
	Root string
	// Program is its program in the image, and its arguments.
	Program []string
	// Env is the image's environment, as KEY=value, and Dir the working directory in the image.
	Env []string
	Dir string
	// User is the user as the image names it.
	User string
	// Network lets the function use this machine's network.
	Network bool
}

// Environment that functions get where their image has none.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}

// firstFile is the descriptor of the first file that a launcher inherits.
const firstFile = "3"

// Command returns the command that starts a function in a sandbox.
//
// The processes of a sandbox end with the launcher: the first one in its pid namespace stays in the
// launcher's process group, which is killed as a whole.
func (l *Launcher) Command(fn Function) fnproc.Command {
	return fnproc.Command{
		Path: l.limiter, Args: slices.Concat(l.limits(), []string{l.path}, l.arguments(fn)), Dir: "/",
		Launch: &fnproc.Launch{
			Name: fn.Name, Message: program + ": ", Files: []string{l.filter}, User: l.userOf(fn.Name), Group: Unprivileged,
		},
	}
}

// limits returns the arguments of prlimit, which sets resource limits before it becomes the launcher:
// no function runs a moment without them.
func (l *Launcher) limits() []string {
	limit := func(name string, value int64) string { return "--" + name + "=" + strconv.FormatInt(value, 10) }
	args := []string{"--core=0", limit("fsize", l.cfg.MaxTemp), limit("nproc", l.cfg.MaxProcesses)}
	if l.cfg.MaxMemory > 0 {
		args = append(args, limit("data", l.cfg.MaxMemory))
	}
	return append(args, "--")
}

func (l *Launcher) arguments(fn Function) []string {
	uid, gid := user(fn.User)
	temp := strconv.FormatInt(l.cfg.MaxTemp, 10)
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", uid, "--gid", gid, "--hostname", "function",
		"--ro-bind", fn.Root, "/", "--proc", "/proc",
		"--dev", "/dev", "--size", temp, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--size", temp, "--tmpfs", "/tmp",
	}
	if fn.Network {
		args = append(args,
			"--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf", "--ro-bind-try", "/etc/hosts", "/etc/hosts")
	} else {
		args = append(args, "--unshare-net")
	}
	for _, variable := range append(environment[:len(environment):len(environment)], fn.Env...) {
		if key, value, ok := strings.Cut(variable, "="); ok && key != "" {
			args = append(args, "--setenv", key, value)
		}
	}
	args = append(args, "--cap-drop", "ALL", "--seccomp", firstFile, "--chdir", fn.Dir, "--")
	return append(args, fn.Program...)
}

// user returns the ids that a function has: those of its image if they are numbers and not root.
func user(image string) (uid, gid string) {
	name, group, _ := strings.Cut(image, ":")
	unprivileged := strconv.Itoa(Unprivileged)
	if id, err := strconv.ParseUint(name, 10, 31); err != nil || id == 0 {
		return unprivileged, unprivileged
	}
	if id, err := strconv.ParseUint(group, 10, 31); err != nil || id == 0 {
		return name, name
	}
	return name, group
}

// Where this program runs as root, each function has a user of its own on the machine, of so many from
// the first one on: no other program has them. The kernel bounds the processes of a user, so that a
// function that takes all of its own leaves those of others.
const (
	firstUser = 0x70000000
	users     = 1 << 20
)

// userOf returns the user that a function's launcher runs as, zero for this program's own.
func (l *Launcher) userOf(name string) uint32 {
	if !l.root {
		return 0
	}
	return firstUser + crc32.ChecksumIEEE([]byte(name))%users
}

// credential returns the attributes of a process that a launcher starts.
func credential(launch *fnproc.Launch) *syscall.SysProcAttr {
	if launch.User == 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: launch.User, Gid: launch.Group}}
}

// ownThreads returns how many threads the user of this program has now: the kernel counts them
// together with those of sandboxes.
func ownThreads() (n int64) {
	id := uint32(os.Getuid()) //nolint:gosec // ids are not negative
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, task := range tasks {
		info, err := os.Stat(task)
		if err != nil {
			continue // it has ended
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == id {
			n++
		}
	}
	return n
}
