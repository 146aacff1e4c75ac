// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// firstFile is the descriptor of the first file that a launcher inherits.
const firstFile = "3"

// bubblewrap starts functions by bubblewrap, which takes all settings as arguments.
type bubblewrap struct {
	cfg     Config
	path    string
	limiter string // the path of prlimit
	filter  string // the path by which the seccomp program is opened
	// perUser limits the processes of the user that sandboxes run as. Where that is this program's own and there are
	// control groups, these limit each sandbox instead.
	perUser bool
}

func (b *bubblewrap) command(fn Function) fnproc.Command {
	return fnproc.Command{
		Path: b.limiter, Args: slices.Concat(b.limits(), []string{b.path}, b.arguments(fn)),
		Launch: &fnproc.Launch{Messages: []string{"bwrap: ", "prlimit: "}, Files: []string{b.filter}},
	}
}

// limits returns the arguments of prlimit, which sets resource limits before it becomes the launcher:
// no function runs a moment without them.
func (b *bubblewrap) limits() []string {
	limit := func(name string, value int64) string { return "--" + name + "=" + strconv.FormatInt(value, 10) }
	args := []string{"--core=0", limit("fsize", b.cfg.MaxTemp)}
	if b.perUser {
		args = append(args, limit("nproc", b.cfg.MaxProcesses))
	}
	if b.cfg.MaxMemory > 0 {
		args = append(args, limit("data", b.cfg.MaxMemory))
	}
	return append(args, "--")
}

func (b *bubblewrap) arguments(fn Function) []string {
	uid, gid := user(fn.User)
	temp := strconv.FormatInt(b.cfg.MaxTemp, 10)
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", uid, "--gid", gid, "--hostname", hostname,
		"--ro-bind", fn.Root, "/", "--proc", "/proc",
		"--dev", "/dev", "--size", temp, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--size", temp, "--tmpfs", "/tmp",
	}
	if fn.Network {
		for _, file := range networkFiles {
			args = append(args, "--ro-bind-try", file, file)
		}
	} else {
		args = append(args, "--unshare-net")
	}
	for _, variable := range fn.environment() {
		key, value, _ := strings.Cut(variable, "=")
		args = append(args, "--setenv", key, value)
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
