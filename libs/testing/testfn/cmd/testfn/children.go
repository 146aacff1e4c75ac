// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"syscall"
)

// startSelf starts this program with another behaviour. The new process has our pipes.
func startSelf(behaviour string, attr syscall.SysProcAttr) *os.Process {
	exe, err := os.Executable()
	check(err)
	child, err := os.StartProcess(exe, []string{exe, behaviour}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &attr,
	})
	check(err)
	return child
}

func hangWithChild(string) int {
	write(os.Stderr, "about to hang\n") // first, so that a test that sees the child can rely on it
	startSelf("hang", syscall.SysProcAttr{})
	return hang("")
}

// hangWithOrphan hangs, with a process in its session whose parent has ended.
func hangWithOrphan(string) int {
	_, err := startSelf("detach-in-session", syscall.SysProcAttr{}).Wait()
	check(err)
	return hang("")
}

func detachInSession(string) int {
	startSelf("hang", syscall.SysProcAttr{Setpgid: true})
	return 0
}

func orphan(string) int {
	startSelf("hang", syscall.SysProcAttr{})
	return echo("")
}

// daemon does what daemons do: a child in a new session starts the daemon and exits, so that the
// daemon's parent becomes init.
func daemon(string) int {
	_, err := startSelf("detach", syscall.SysProcAttr{Setsid: true}).Wait()
	check(err)
	return echo("")
}

func detach(string) int {
	startSelf("hang", syscall.SysProcAttr{Setsid: true})
	return 0
}

// daemons leaves value daemons, each in a separate session.
func daemons(value string) int {
	n, err := strconv.Atoi(value)
	check(err)
	for range n {
		_, err := startSelf("detach", syscall.SysProcAttr{Setsid: true}).Wait()
		check(err)
	}
	return echo("")
}

// leaveGroup tries to move to its parent's process group, out of the one that it leads.
func leaveGroup(string) int {
	group, err := syscall.Getpgid(os.Getppid())
	check(err)
	if err := syscall.Setpgid(0, group); err != nil {
		write(os.Stderr, "cannot leave: "+err.Error()+"\n")
	}
	startSelf("hang", syscall.SysProcAttr{}) // the end of which is the end of the attempt
	return hang("")
}
