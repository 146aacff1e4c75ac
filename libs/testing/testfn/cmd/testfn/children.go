// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"strings"
	"syscall"
)

// startSelf starts this program as a child with another behaviour. The child inherits stdin, stdout and stderr.
func startSelf(behaviour string, attr syscall.SysProcAttr) *os.Process {
	return startWith([]*os.File{os.Stdin, os.Stdout, os.Stderr}, behaviour, attr)
}

// startQuiet starts this program as a child with another behaviour. The child does not inherit stdin, stdout and
// stderr, so that nobody waits until the child closes them.
func startQuiet(behaviour string, attr syscall.SysProcAttr) *os.Process {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	exitOnError(err)
	defer func() { _ = null.Close() }()
	return startWith([]*os.File{null, null, null}, behaviour, attr)
}

func startWith(files []*os.File, behaviour string, attr syscall.SysProcAttr) *os.Process {
	exe, err := os.Executable()
	exitOnError(err)
	child, err := os.StartProcess(exe, []string{exe, behaviour}, &os.ProcAttr{Files: files, Sys: &attr})
	exitOnError(err)
	return child
}

func hangWithChild(string) int {
	// We log first, so that the log is complete when a test sees the child.
	writeText(os.Stderr, "about to hang\n")
	startSelf("hang", syscall.SysProcAttr{})
	return hang("")
}

// hangWithOrphan hangs and leaves an orphan: a process of the same session whose parent has exited.
func hangWithOrphan(string) int {
	_, err := startSelf("detach-in-session", syscall.SysProcAttr{}).Wait()
	exitOnError(err)
	return hang("")
}

func detachInSession(string) int {
	startSelf("hang", syscall.SysProcAttr{Setpgid: true})
	return 0
}

func makeOrphan(string) int {
	startQuiet("hang", syscall.SysProcAttr{})
	return echo("")
}

// hold writes the first half of its input and exits. Its child process keeps the output open, sleeps for the duration
// value, and then writes the second half. If value ends in ",daemon", the child is a daemon in another session.
func hold(value string) int {
	value, isDaemon := strings.CutSuffix(value, ",daemon")
	list := readInput()
	writeText(os.Stdout, string(list[:len(list)/2]))
	exitOnError(os.Setenv("TESTFN_REST", string(list[len(list)/2:])))
	if isDaemon {
		_, err := startSelf("hold-detach="+value, syscall.SysProcAttr{Setsid: true}).Wait()
		exitOnError(err)
		return 0
	}
	startSelf("hold-rest="+value, syscall.SysProcAttr{})
	return 0
}

func holdDetach(value string) int {
	startSelf("hold-rest="+value, syscall.SysProcAttr{Setsid: true})
	return 0
}

func holdRest(value string) int {
	pause(value)
	writeText(os.Stdout, os.Getenv("TESTFN_REST"))
	return 0
}

func detachChild(string) int {
	startSelf("hang", syscall.SysProcAttr{Setsid: true})
	return 0
}

// startDaemons starts daemons. The argument value is their number, and the default is 1. For each daemon, a child in a
// new session starts the daemon and exits. As usual, init then becomes the daemon's parent.
func startDaemons(value string) int {
	for range parseInt(cmp.Or(value, "1")) {
		_, err := startQuiet("detach", syscall.SysProcAttr{Setsid: true}).Wait()
		exitOnError(err)
	}
	return echo("")
}

// leaveGroup tries to move this process to its parent's process group, so that it survives when its own group is
// killed.
func leaveGroup(string) int {
	group, err := syscall.Getpgid(os.Getppid())
	exitOnError(err)
	if err := syscall.Setpgid(0, group); err != nil {
		writeText(os.Stderr, "cannot leave: "+err.Error()+"\n")
	}
	startSelf("hang", syscall.SysProcAttr{}) // shows tests that the attempt is over
	return hang("")
}
