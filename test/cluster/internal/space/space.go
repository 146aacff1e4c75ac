// SPDX-License-Identifier: Apache-2.0

// Package space creates a cluster's namespaces for processes, mounts and networks. They disappear when their first
// process exits.
package space

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/cgroup"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Command returns a command that runs as the first process of new namespaces. The process must call Init. It continues
// to run when its parent exits. It inherits no open files, because such a file may hold a lock. For example, the lock
// of `flock FILE make cluster-up` would be held as long as the cluster runs.
func Command(name string, args ...string) *exec.Cmd {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // fails before Linux 5.11
	command := exec.Command(name, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
	return command
}

// Init sets up the namespaces of a cluster, runs a command in them and waits for its exit. The caller must be the first
// process of its PID namespace. Orphans become children of this process, so Init also reaps them. Init hides the
// contents of /run, /var/lib and /var/log, except for the directories listed in keep.
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

// reapUntil reaps all child processes, including orphans, until the process pid has exited.
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
