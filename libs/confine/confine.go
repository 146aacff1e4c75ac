// SPDX-License-Identifier: Apache-2.0

// Package confine holds back function processes, without privileges: what they can
// read, write, signal, look into and connect to.
//
// A function is forked from a thread that has confined itself. Its process inherits
// from the thread what a process cannot take off again: no_new_privs, no capabilities,
// a Landlock domain and a seccomp filter. The thread ends afterwards, so that no other
// thread of the program has any of it. This needs no further program, no user
// namespace and no second exec. Each process gets a Landlock domain of its own, and
// processes of different domains cannot trace each other, nor signal each other where Landlock
// has scopes (Linux 6.12).
//
// What it holds back on which kernels is a table in docs/security-tests.md. On systems other than Linux it
// holds back nothing.
package confine

import "log/slog"

// Config is what a Confiner works with.
type Config struct {
	// Level is what to do where the kernel cannot hold back everything; empty is BestEffort.
	Level Level
	// ReadAll lets functions read every file, except those in Hidden and in TempDir. It is
	// for a container that has nothing but one function.
	ReadAll bool
	// OwnFiles lets functions read nothing but devices, their program and [Function.Readable].
	OwnFiles bool
	// Hidden are files and directories that functions must not read, although they are in a
	// directory that functions may read otherwise.
	Hidden []string
	// Shared are directories that every program expects to write to, such as /tmp. A function may write there if it runs
	// alone: see [Function.Shared].
	Shared []string
	// TempDir is where temporary directories of functions are made; empty is the system's.
	TempDir string
	// MaxTempBytes and MaxTempFiles bound each of these directories; zero is 256 MiB and 10,000.
	MaxTempBytes, MaxTempFiles int64
	// Log gets one line with what is not held back.
	Log *slog.Logger

	kernel *kernel // nil is the one that runs; tests set an older one
}

// Function is what to start and what it may do.
type Function struct {
	// Path is the program's file, and Dir what a relative path is relative to.
	Path, Dir string
	// Readable are files and directories that the function may read in addition. Those that do not exist are left out.
	Readable []string
	// Network allows sockets.
	Network bool
	// Shared allows the function to use the directories of [Config.Shared]. No other function may run meanwhile.
	Shared bool
}

// Resource limits of functions.
const (
	// MaxFiles is how many files a process may have open at a time.
	MaxFiles = 4096
	// MaxCore is the size with which the kernel writes no core file, and pipes none to a program of
	// the machine either, which would keep what callers sent. Zero bounds only files.
	MaxCore = 1
	// KillFirst is the score with which the kernel ends functions before any other program when memory runs out.
	KillFirst = 1000
)

// Limits bound what a process and its later children use, beside [MaxFiles] and [MaxCore]. Zero is no limit.
type Limits struct {
	// FileBytes bounds each file, and DataBytes the private memory of each process.
	FileBytes, DataBytes int64
	// Processes bounds the processes and threads of the process's user.
	Processes int64
}
