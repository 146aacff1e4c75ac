// SPDX-License-Identifier: Apache-2.0

// Package sandbox isolates the attacks from the machine: in namespaces of their own for processes, network and
// mounts, and in control groups with a memory limit for the programs under attack. All of it disappears when the
// first process exits.
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

// Metadata is the link-local address at which clouds tell machines their credentials. In
// the sandbox it is an address of the loopback device.
const Metadata = "169.254.169.254"

// Possible reports whether this process may make namespaces.
func Possible() bool { return os.Geteuid() == 0 }

// Run runs this program again with args, as the first process of new namespaces, and
// returns its exit code. When ctx ends it has ten seconds to end in order.
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
		Unshareflags: syscall.CLONE_NEWNS, // Go makes all mounts private with this flag
		Pdeathsig:    syscall.SIGKILL,
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// enterNamespaces makes new namespaces usable: /proc shows their processes, and loopback is up.
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
