// SPDX-License-Identifier: Apache-2.0

// Package confine restricts function processes without privileges: the files that they can read and write, and the
// processes and addresses that they can reach.
//
// A function is forked from a thread that has confined itself. Its process inherits restrictions that a process cannot
// remove: no_new_privs, no capabilities, a Landlock domain and a seccomp filter. The thread exits afterwards, so that
// no other thread of the program is restricted. This needs no other program, no user namespace and no second exec.
// Each process gets its own Landlock domain. Processes of different domains cannot trace each other, nor signal each
// other if Landlock supports scopes (Linux 6.12).
//
// A table in docs/security-tests.md lists the restrictions by kernel. On systems other than Linux there are none.
package confine

import "log/slog"

// Config configures a Confiner.
type Config struct {
	// Level is the reaction to a kernel that lacks restrictions. The default is BestEffort.
	Level Level
	// ReadAll lets functions read all files except those in Hidden and in TempDir. It is for a container with a single
	// function.
	ReadAll bool
	// OwnFiles restricts functions to devices, their program and [Function.Readable].
	OwnFiles bool
	// Hidden are files and directories that functions must not read, although they are in a
	// directory that functions may read otherwise.
	Hidden []string
	// Shared are directories that every program expects to write to, such as /tmp. A function may write there if it runs
	// alone: see [Function.Shared].
	Shared []string
	// TempDir is the parent of the functions' temporary directories. The default is the system's directory.
	TempDir string
	// MaxTempBytes and MaxTempFiles bound each of these directories; zero is 256 MiB and 10,000.
	MaxTempBytes, MaxTempFiles int64
	// Log gets a line with the missing restrictions.
	Log *slog.Logger

	kernel *kernel // the running kernel if nil; tests set an older kernel
}

// Function is a program with its permissions.
type Function struct {
	// Path is the program's file; a relative path is relative to Dir.
	Path, Dir string
	// Readable are files and directories that the function may read in addition. Those that do not exist are left out.
	Readable []string
	// Network allows sockets.
	Network bool
	// Shared allows the function to use the directories of [Config.Shared]. No other function may run at the same time.
	Shared bool
}

// Resource limits of functions.
const (
	// MaxFiles is the maximum number of open files of a process.
	MaxFiles = 4096
	// MaxCore is the limit with which the kernel neither writes a core file nor pipes a core dump to a program of the
	// machine: a dump would contain callers' packages. With zero the kernel still pipes.
	MaxCore = 1
	// KillFirst is the score with which the kernel kills functions before any other program when memory runs out.
	KillFirst = 1000
)

// Limits are resource limits of a process and its later children, in addition to [MaxFiles] and [MaxCore]. Zero means
// no limit.
type Limits struct {
	// FileBytes bounds each file, and DataBytes the private memory of each process.
	FileBytes, DataBytes int64
	// Processes bounds the processes and threads of the process's user.
	Processes int64
}
