// SPDX-License-Identifier: Apache-2.0

// Package space makes the namespaces of a cluster. They hold everything that the cluster's processes would leave on a
// machine: when the first process in them exits, all their processes, mounts and networks disappear.
package space

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/cgroup"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Command returns the command as the first process of new namespaces. It outlives its parent. It
// must call Init.
func Command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
	return command
}

// Init sets up the new namespaces for the cluster, runs the command in them and returns when it has exited. The
// machine's files are visible in them, but nothing below /run, /var/lib and /var/log except for the kept directories.
// The caller is the first process of its namespace: it also inherits the orphans of all processes.
func Init(l layout.Layout, keep []string, command *exec.Cmd) error {
	if os.Getpid() != 1 {
		return errors.New("only the first process of new namespaces may set them up: use the command up")
	}
	if err := cgroup.Join(l.Cgroup()); err != nil {
		return err
	}
	if err := mountAll(l, keep); err != nil {
		return err
	}
	if err := connectNetwork(); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	return reapUntil(command.Process.Pid)
}

// reapUntil reaps processes until the given process has exited.
func reapUntil(pid int) error {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for processes: %w", err)
		case ended == pid && status.ExitStatus() != 0:
			return fmt.Errorf("the supervisor ended: status %#x", uint32(status))
		case ended == pid:
			return nil
		}
	}
}
