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
	"orphan": func() { hang("") },
	"parent": func() { start("orphan", &syscall.SysProcAttr{Setsid: true}) },
	"spy":    spy,
}

// start starts this program in a role, without pipes, and returns its process, or nil.
func start(role string, attr *syscall.SysProcAttr) *os.Process {
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

func hang(string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	time.Sleep(lifetime)
}

func wait(arg string) {
	if d, err := time.ParseDuration(arg); err == nil {
		time.Sleep(d)
	}
}

// eat uses memory, page by page, and keeps it for a while.
func eat(arg string) {
	n, _ := strconv.Atoi(arg)
	memory := make([]byte, n)
	for i := 0; i < n; i += os.Getpagesize() {
		memory[i] = 1
	}
	time.Sleep(time.Second)
	runtime.KeepAlive(memory)
}

func tell(arg string) {
	fmt.Fprintln(os.Stderr, arg)
	os.Exit(1)
}

// orphans starts each process by a parent that exits, so that it is not a child of this process.
func orphans(arg string) {
	n, _ := strconv.Atoi(arg)
	for range n {
		if parent := start("parent", &syscall.SysProcAttr{Setsid: true}); parent != nil {
			_, _ = parent.Wait()
		}
	}
}

// hide leaves a process in the group of the server, which the server cannot kill as a
// whole without ending itself.
func hide(string) {
	group, err := syscall.Getpgid(os.Getppid())
	if err != nil {
		return
	}
	if start("spy", &syscall.SysProcAttr{Setpgid: true, Pgid: group}) != nil {
		fmt.Fprintln(os.Stderr, "joined the server's group")
	}
}
