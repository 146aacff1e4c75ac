// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The versions of Landlock's interface in which something came that is used here.
const (
	abiFiles     = 1 // rules for files; no tracing across domains
	abiRefer     = 2 // renaming from one directory to another
	abiTruncate  = 3
	abiIoctl     = 5
	abiScopes    = 6 // no signals and no abstract sockets across domains
	newestNeeded = abiScopes
)

// kernel is what the running kernel, and the container around this program, allow.
type kernel struct {
	abi     int  // of Landlock, 0 without
	seccomp bool // filters
}

func probeKernel() kernel {
	// A trial says more than the version: a container's own filter may forbid the calls.
	k := kernel{abi: landlockABI()}
	onOwnThread(func() {
		if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
			return
		}
		k.seccomp = allowAll().load() == nil
		if k.abi > 0 && tryRestrict() != nil {
			k.abi = 0
		}
	})
	return k
}

// landlockABI returns the version of the kernel's Landlock interface, 0 without.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// tryRestrict puts the calling thread into a domain that forbids nothing that this program
// does on it.
func tryRestrict() error {
	fd, err := createRuleset(&unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return restrictSelf(fd)
}

// lacks returns what this kernel cannot hold back at all.
func (k kernel) lacks() []string {
	var lacks []string
	if k.abi < abiFiles {
		lacks = append(lacks, "Landlock (Linux 5.13): functions can use every file that this program can, and look into each other")
	}
	if !k.seccomp {
		lacks = append(lacks, "seccomp filters: functions can use the network and every system call")
	}
	return lacks
}

// replaced returns what this kernel holds back in another way than the newest ones, at the
// price that is named.
func (k kernel) replaced() []string {
	if k.abi >= newestNeeded || !k.seccomp {
		return nil
	}
	return []string{"Landlock's signal scope (Linux 6.12): functions can signal only themselves, not what they start"}
}

// createRuleset wraps the system call, which golang.org/x/sys has no function for.
func createRuleset(attr *unix.LandlockRulesetAttr) (fd int, err error) {
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0) //nolint:gosec // there is no other way to pass it
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

func addRule(ruleset int, attr *unix.LandlockPathBeneathAttr) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(attr)), 0, 0, 0) //nolint:gosec // there is no other way to pass it
	if errno != 0 {
		return errno
	}
	return nil
}

func restrictSelf(ruleset int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
