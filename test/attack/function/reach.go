// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// leftFile is the name of a file that a function leaves behind. A later evaluation must not find it.
const leftFile = "left-by-an-earlier-evaluation"

// lookAtServer tries to read the server's memory, environment and open files, and to attach to it as a debugger.
func lookAtServer(string) {
	server := filepath.Join("/proc", strconv.Itoa(os.Getppid()))
	for _, name := range []string{"environ", "mem", "maps"} {
		file, err := os.Open(filepath.Join(server, name))
		if err != nil {
			continue
		}
		if n, err := file.Read(make([]byte, 64)); name != "mem" && err == nil && n > 0 {
			reportBreach("read the server's %s", name)
		}
		_ = file.Close()
	}
	if _, err := os.ReadDir(filepath.Join(server, "fd")); err == nil {
		reportBreach("listed the server's open files")
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, syscall.PTRACE_ATTACH, uintptr(os.Getppid()), 0, 0, 0, 0)
	if errno == 0 {
		reportBreach("attached to the server as a debugger")
	}
}

func signalServer(string) {
	if err := syscall.Kill(os.Getppid(), syscall.SIGTERM); err == nil {
		reportBreach("sent SIGTERM to the server")
	}
}

// lowerLimits tries to lower the server's limit of open files, so that the server runs out of file descriptors.
func lowerLimits(string) {
	files := [2]uint64{16, 16}
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(os.Getppid()),
		syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&files)), 0, 0, 0)
	if err == 0 {
		reportBreach("lowered the server's limit of open files")
	}
}

func connectTo(arg string) {
	conn, err := net.DialTimeout("tcp", arg, time.Second)
	if err == nil {
		reportBreach("connected to %s", arg)
		_ = conn.Close()
	}
}

func readPath(arg string) {
	if content, err := os.ReadFile(arg); err == nil && len(content) > 0 {
		reportBreach("read %s", arg)
	}
}

// writableDirectories returns directories in which functions can usually create files.
func writableDirectories() []string {
	all := []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}
	slices.Sort(all)
	return slices.Compact(all)
}

func leaveFile(string) {
	for _, dir := range writableDirectories() {
		_ = os.WriteFile(filepath.Join(dir, leftFile), []byte("x"), 0o600)
	}
}

func findFile(string) {
	for _, dir := range writableDirectories() {
		if err := os.Remove(filepath.Join(dir, leftFile)); err == nil {
			reportBreach("found in %s what an earlier evaluation left", dir)
		}
	}
}

// fillDirectory writes temporary files until they contain the given number of bytes or the server kills the function.
// It writes many small files, to test the limit of all files together and not the limit of a single file.
func fillDirectory(arg string) {
	most, _ := strconv.Atoi(arg)
	part := make([]byte, 1<<20)
	for written := 0; written < most; written += len(part) {
		name := filepath.Join(os.TempDir(), fmt.Sprintf("fill-%d-%d", os.Getpid(), written))
		err := os.WriteFile(name, part, 0o600)
		defer func() { _ = os.Remove(name) }()
		if err != nil {
			return
		}
	}
	reportBreach("wrote %d bytes into %s", most, os.TempDir())
}
