// SPDX-License-Identifier: Apache-2.0

// Package confine restricts the files, processes and addresses that the processes of functions can reach. It works
// without privileges, a user namespace, a helper program or a second exec.
//
// A thread of the program confines itself, forks the function and exits, so that no other thread is restricted. The
// function inherits the restrictions and cannot remove them: no_new_privs, no capabilities, a seccomp filter and a
// Landlock domain of its own. Processes of different domains cannot trace each other, and with Landlock's scopes
// (Linux 6.12) they cannot signal each other either.
//
// heldBack in hostile_test.go lists the prevented actions. On systems other than Linux there are no restrictions.
package confine

import (
	"fmt"
	"log/slog"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Config configures a Confiner.
type Config struct {
	// Level determines how New reacts to a kernel that lacks some of the restrictions. Empty means BestEffort.
	Level Level
	// ReadAll allows functions to read all files except Hidden and TempDir. It is for a container that runs a single
	// function.
	ReadAll bool
	// OwnFiles limits the files that a function may use to harmless devices such as /dev/null, its own program and
	// [Function.Readable].
	OwnFiles bool
	// Hidden contains files and directories that functions must not read, even in directories that they may read.
	Hidden []string
	// Shared contains directories that most programs expect to be writable, such as /tmp. A function may write to them
	// only while no other function runs (see [Function.Shared]). It cannot write to a directory that is not empty when
	// [New] is called. Only functions may use the directories. TempDir may be one of them.
	Shared []string
	// TempDir is the parent of the functions' temporary directories. Empty means the system's default.
	TempDir string
	// MaxTempBytes and MaxTempFiles limit each function's temporary directory. Zero means 256 MiB and 10,000 files.
	MaxTempBytes, MaxTempFiles int64
	// Log receives a line at startup that lists the restrictions that the kernel lacks.
	Log *slog.Logger

	kernel *kernel // set by tests to imitate an older kernel; nil means the running kernel
}

// Function is a program with its permissions.
type Function struct {
	// Path is the program's file. Dir is its working directory. A relative Path is relative to Dir.
	Path, Dir string
	// Readable contains further files and directories that the function may read. They need not exist.
	Readable []string
	// Network allows the function to use network sockets.
	Network bool
	// Shared allows the function to write to the directories of [Config.Shared]. Callers must not run another function
	// at the same time.
	Shared bool
}

// Certificates contains the paths of certificate authorities on Linux distributions, including the targets of links.
var Certificates = []string{
	"/etc/ca-certificates", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs",
	"/etc/ssl/cert.pem", "/etc/ssl/certs",
}

// Resource limits of functions.
const (
	// MaxFiles is the maximum number of open files of a process.
	MaxFiles = 4096
	// MaxCore is the maximum size of a core dump, in bytes. With 0, the kernel would still pipe the dump to a program, and
	// the dump may contain resources of Porch's users. With 1, the kernel neither writes a core file nor pipes the dump.
	MaxCore = 1
	// KillFirst is the OOM score adjustment of functions. When memory runs out, the kernel kills functions first.
	KillFirst = 1000
)

// Limits contains resource limits of a process and of the children that it starts later. [MaxFiles] and [MaxCore]
// always apply. Zero means no limit.
type Limits struct {
	// FileBytes limits the size of each file. DataBytes limits the private memory of each process.
	FileBytes, DataBytes int64
	// Processes limits the total number of processes and threads of the user that runs the process.
	Processes int64
}

// Level determines how a program reacts to a kernel that cannot restrict functions.
type Level string

// Values of Level.
const (
	Require    Level = "require"     // do not start
	BestEffort Level = "best-effort" // confine as far as possible
	Off        Level = "off"         // do not confine
)

// Check records a problem with the setting called name if l is not a valid level. An empty level is valid and means
// BestEffort.
func (l Level) Check(checks *config.Checks, name string) {
	checks.That(l == "" || l == Require || l == BestEffort || l == Off, name, string(l), "require, best-effort or off")
}

// checkOtherSystem returns an error if the level requires restrictions, which only Linux supports.
func (l Level) checkOtherSystem(system string) error {
	if l != Require {
		return nil
	}
	return fmt.Errorf("confine functions: only Linux can, and this is %s: "+
		"run this program on Linux, or set FNR_CONFINE=best-effort", system)
}

// Versions of Landlock that introduced the features that this package uses.
const (
	abiFiles     = 1 // rules for files; no tracing across domains
	abiRefer     = 2 // renaming across directories
	abiTruncate  = 3
	abiIoctl     = 5
	abiScopes    = 6 // no signals and no abstract sockets across domains
	newestNeeded = abiScopes
)

// kernel describes the restrictions that the kernel supports and that the container permits.
type kernel struct {
	abi     int  // version of Landlock, or 0 without Landlock
	seccomp bool // true if seccomp filters can be loaded
}

// missingFeatures returns descriptions of the restrictions that this kernel lacks.
func (k kernel) missingFeatures() []string {
	var lacks []string
	if k.abi < abiFiles {
		lacks = append(lacks,
			"Landlock (Linux 5.13): functions can use every file that this program can, and look into each other")
	}
	if !k.seccomp {
		lacks = append(lacks, "seccomp filters: functions can use the network and every system call")
	}
	return lacks
}

// replacedFeatures describes missing Landlock features that weaker seccomp rules replace, and the drawbacks of these
// rules. It returns nil if the kernel has all Landlock features, or if it supports no seccomp filters.
func (k kernel) replacedFeatures() []string {
	if k.abi >= newestNeeded || !k.seccomp {
		return nil
	}
	return []string{"Landlock's signal scope (Linux 6.12): functions cannot signal single processes " +
		"that they start, and may signal threads of other functions"}
}
