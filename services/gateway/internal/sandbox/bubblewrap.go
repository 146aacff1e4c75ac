// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// Numbers of the file descriptors that bubblewrap inherits: a file with the seccomp filter, and a pipe with
// bubblewrap's arguments.
const (
	filterFile    = "3"
	argumentsFile = "4"
)

// bubblewrap starts sandboxes with the program bwrap. bwrap reads its arguments from a pipe, so that its command line
// contains neither the function's environment nor paths of this machine. The pipe also gives us time to set the
// resource limits of bwrap, because bwrap starts no process before it has read the arguments.
type bubblewrap struct {
	cfg    Config
	path   string
	filter string // path of the file with the seccomp filter
	// processes returns the current maximum number of processes for the user that runs a sandbox. Zero means no limit.
	processes func() int64
}

func (b *bubblewrap) command(fn Function) (fnproc.Command, *fnproc.StartError) {
	return fnproc.Command{
		Path: b.path, Args: append([]string{"--args", argumentsFile, "--"}, fn.Program...),
		Launch: &fnproc.Launch{
			Messages: []string{"bwrap: "}, Files: []string{b.filter}, Limits: b.resourceLimits,
			Arguments: joinArguments(b.buildArguments(fn)), TempFiles: maxTempFiles, TempBytes: b.cfg.MaxTemp,
		},
	}, nil
}

// joinArguments encodes arguments for bubblewrap's option --args: a zero byte follows each argument. An argument
// that contains a zero byte is cut off there.
func joinArguments(arguments []string) []byte {
	var all []byte
	for _, argument := range arguments {
		argument, _, _ = strings.Cut(argument, "\x00")
		all = append(append(all, argument...), 0)
	}
	return all
}

// resourceLimits returns the limits for a new bubblewrap process. They depend on the number of running processes.
func (b *bubblewrap) resourceLimits() confine.Limits {
	return confine.Limits{FileBytes: b.cfg.MaxTemp, DataBytes: b.cfg.MaxMemory, Processes: b.processes()}
}

// devices are the devices in a sandbox. We do not use bubblewrap's option --dev, because it also creates
// pseudoterminals, of which the machine has only a limited number.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func (b *bubblewrap) buildArguments(fn Function) []string {
	uid, gid := userIDs(fn.User)
	temp := formatInt(b.cfg.MaxTemp)
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
		"--uid", uid, "--gid", gid, "--hostname", hostname,
		"--ro-bind", fn.Root, "/", "--proc", "/proc",
		// Hide the directory /proc/1 of the sandbox's first process, which belongs to bubblewrap. It runs as the same user as
		// the function. The function could otherwise change the memory of this process to prevent its exit.
		"--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1",
		"--size", "65536", "--tmpfs", "/dev",
	}
	for _, device := range devices {
		args = append(args, "--dev-bind", device, device)
	}
	for fd, name := range []string{"stdin", "stdout", "stderr"} {
		args = append(args, "--symlink", "/proc/self/fd/"+strconv.Itoa(fd), "/dev/"+name)
	}
	args = append(args, "--symlink", "/proc/self/fd", "/dev/fd",
		"--size", temp, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--size", temp, "--tmpfs", "/tmp")
	if fn.Network {
		args = append(args, sharedFiles(fn.Root)...)
	} else {
		args = append(args, "--unshare-net")
	}
	for _, variable := range fn.mergeEnvironment() {
		key, value, _ := strings.Cut(variable, "=")
		args = append(args, "--setenv", key, value)
	}
	if strings.HasPrefix(fn.Dir, "/tmp/") {
		args = append(args, "--dir", fn.Dir) // a directory in the new /tmp, which hides the image's /tmp
	}
	return append(args, "--cap-drop", "ALL", "--seccomp", filterFile, "--chdir", fn.Dir)
}

// sharedFiles returns bwrap's arguments that mount this machine's files for name resolution, such as /etc/resolv.conf.
// It omits a file if the image lacks the file's directory. It also omits a file if the file or its directory is a
// symbolic link in the image, because bwrap would create the link's target, possibly outside of the image. If only the
// file is missing in the image, bwrap fails with an error that names the file.
func sharedFiles(root string) (args []string) {
	for _, file := range networkFiles {
		dir, err := os.Lstat(filepath.Join(root, filepath.Dir(file)))
		if err != nil || !dir.IsDir() {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode().IsRegular()) {
			args = append(args, "--ro-bind-try", file, file)
		}
	}
	return args
}

// userIDs returns the user and group IDs for a function. The argument image is the user that the image's configuration
// specifies, such as "1000:1000". If the user is root or not a number, both IDs are [Unprivileged]. If the group is
// root or not a number, the user ID is also the group ID.
func userIDs(image string) (uid, gid string) {
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
