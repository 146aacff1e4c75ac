package main

import (
	"os"
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
	write(os.Stderr, "about to hang\n") // first, so that who sees the child can rely on it
	startSelf("hang", syscall.SysProcAttr{})
	return hang("")
}

func orphan(string) int {
	startSelf("hang", syscall.SysProcAttr{})
	return echo("")
}

// daemon does what daemons do: a child in a session of its own starts the daemon and
// ends, so that the daemon is nobody's child.
func daemon(string) int {
	_, err := startSelf("detach", syscall.SysProcAttr{Setsid: true}).Wait()
	check(err)
	return echo("")
}

func detach(string) int {
	startSelf("hang", syscall.SysProcAttr{Setsid: true})
	return 0
}

// leaveGroup moves to its parent's process group, out of the one that it leads. A child
// keeps that group alive, and another one, started into it, tells that the move is done.
func leaveGroup(string) int {
	startSelf("hang", syscall.SysProcAttr{})
	group, err := syscall.Getpgid(os.Getppid())
	check(err)
	check(syscall.Setpgid(0, group))
	startSelf("hang", syscall.SysProcAttr{Setpgid: true, Pgid: os.Getpid()})
	return hang("")
}
