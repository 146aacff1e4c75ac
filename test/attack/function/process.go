// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// lifetime is the maximum run time of processes that outlive their evaluation. After this time, they exit on their own,
// because an interrupted test does not kill them.
const lifetime = 2 * time.Minute

// roles maps the roles of helper processes to their tasks. A helper is a copy of this program whose argument 0 is its
// role.
var roles = map[string]func(){
	"orphan": func() { hangForever("") },
	"parent": func() { startRole("orphan", &syscall.SysProcAttr{Setsid: true}) },
	"spy":    spy,
}

// startRole starts a copy of this program as a helper process, without open files. role selects the helper's task. The
// result is nil if the helper does not start.
func startRole(role string, attr *syscall.SysProcAttr) *os.Process {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	process, err := os.StartProcess(self, []string{role}, &os.ProcAttr{Sys: attr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		return nil
	}
	return process
}

func hangForever(string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	time.Sleep(lifetime)
}

func waitFor(arg string) {
	if d, err := time.ParseDuration(arg); err == nil {
		time.Sleep(d)
	}
}

// eatMemory allocates memory and keeps it for a second. The argument is the number of bytes. It writes to each page,
// because untouched pages occupy no memory.
func eatMemory(arg string) {
	n, _ := strconv.Atoi(arg)
	memory := make([]byte, n)
	for i := 0; i < n; i += os.Getpagesize() {
		memory[i] = 1
	}
	time.Sleep(time.Second)
	runtime.KeepAlive(memory)
}

func writeLog(arg string) {
	fmt.Fprintln(os.Stderr, arg)
	os.Exit(1)
}

// leaveOrphans starts arg processes that outlive this process. Each has a parent process of its own, which exits at
// once. The orphans are therefore not children of this process.
func leaveOrphans(arg string) {
	n, _ := strconv.Atoi(arg)
	for range n {
		if parent := startRole("parent", &syscall.SysProcAttr{Setsid: true}); parent != nil {
			_, _ = parent.Wait()
		}
	}
}

// hideProcess starts a spy process in the server's process group. The server must kill the spy alone, because a signal
// to the whole group would also kill the server.
func hideProcess(string) {
	group, err := syscall.Getpgid(os.Getppid())
	if err != nil {
		return
	}
	if startRole("spy", &syscall.SysProcAttr{Setpgid: true, Pgid: group}) != nil {
		fmt.Fprintln(os.Stderr, "joined the server's group")
	}
}
