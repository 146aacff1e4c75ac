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

// lifetime bounds the life of orphans, so that a broken run leaves none for ever.
const lifetime = 2 * time.Minute

// roles maps the names under which copies of this program are started to their behaviour.
var roles = map[string]func(){
	"orphan": func() { hangForever("") },
	"parent": func() { startRole("orphan", &syscall.SysProcAttr{Setsid: true}) },
	"spy":    spy,
}

// startRole starts this program in a role, without pipes, and returns its process, or nil.
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

// eatMemory uses memory, page by page, and keeps it for a while.
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

// leaveOrphans starts each process by a parent that exits, so that it is not a child of this process.
func leaveOrphans(arg string) {
	n, _ := strconv.Atoi(arg)
	for range n {
		if parent := startRole("parent", &syscall.SysProcAttr{Setsid: true}); parent != nil {
			_, _ = parent.Wait()
		}
	}
}

// hideProcess leaves a process in the group of the server, which the server cannot kill as a
// whole without ending itself.
func hideProcess(string) {
	group, err := syscall.Getpgid(os.Getppid())
	if err != nil {
		return
	}
	if startRole("spy", &syscall.SysProcAttr{Setpgid: true, Pgid: group}) != nil {
		fmt.Fprintln(os.Stderr, "joined the server's group")
	}
}
