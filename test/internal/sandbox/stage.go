// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stage is the first argument of a process that calls [Become], which sets up an environment and then executes a
// program.
const Stage = "stage"

// user is the user and group ID of programs under attack, as in their images.
const user = 65532

// Token and DockerConfig are the paths of credentials that programs can read, but functions must not.
const (
	Token        = "/run/secrets/kubernetes.io/serviceaccount/token"
	DockerConfig = "/run/secrets/docker/config.json"
)

// Command returns a command that runs a program in the group, in an environment like a container's. The program
// runs as an unprivileged user, with empty temporary directories, and sees its own group as the root of control
// groups. If g is nil, the command runs the program directly.
func (g *Group) Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	if g == nil {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Stage, g.dir, g.cpu, g.root, path}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

// Become sets up the environment that [Group.Command] describes, and replaces this process by a program. It returns
// only after an error. args are the command-line arguments after [Stage].
func Become(args []string) error {
	runtime.LockOSThread() // credentials and mount namespaces belong to a thread, on which exec must run
	if len(args) < 4 {
		return errors.New("the stage needs a group, its processors, its root and a program")
	}
	group, root, command := Group{dir: args[0], cpu: args[1]}, args[2], args[3:]
	const itself = 0
	if err := errors.Join(group.Add(itself), mountGroups(group.dir, root), dropPrivileges()); err != nil {
		return err
	}
	return unix.Exec(command[0], command, os.Environ())
}

// mountGroups mounts the same files as in a container. They include the process's own control group as the root of all
// control groups, empty temporary directories, and credentials.
func mountGroups(group, root string) error {
	if err := unix.Mount(group, root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("show the control group's limit: %w", err)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("mount an empty %s: %w", dir, err)
		}
	}
	for path, content := range map[string]string{Token: "token", DockerConfig: `{"auths": {}}`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// dropPrivileges changes to an unprivileged user and prevents the process from regaining privileges.
func dropPrivileges() error {
	err := errors.Join(
		syscall.Setgroups(nil), syscall.Setgid(user), syscall.Setuid(user), // the order matters
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
	)
	if err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	return nil
}
