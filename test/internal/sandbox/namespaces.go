// SPDX-License-Identifier: Apache-2.0

// Package sandbox isolates attacks (test/attack) and mutated programs (test/mutate) from the machine, in PID, network
// and mount namespaces. The kernel removes the namespaces when their first process exits. Attacked programs have a
// memory limit.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Metadata is the address at which clouds serve credentials. In the sandbox, it belongs to the loopback device.
const Metadata = "169.254.169.254"

// Possible reports whether this process may create namespaces, which requires root.
func Possible() bool { return os.Geteuid() == 0 }

// Run runs this program again with args, as the first process of new namespaces. It returns the exit code of this
// process. When ctx ends, Run sends SIGTERM to the process, and ten seconds later SIGKILL.
func Run(ctx context.Context, args ...string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Unshareflags: syscall.CLONE_NEWNS, // with this flag, Go makes all mounts private
		Pdeathsig:    syscall.SIGKILL,
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// enterNamespaces mounts /proc for the new PID namespace, and enables loopback in the new network namespace.
func enterNamespaces() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback device: %w", err)
	}
	address, err := netlink.ParseAddr(Metadata + "/32")
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(loopback), netlink.AddrAdd(loopback, address))
}
