// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

func probeKernel() kernel {
	// We try the system calls instead of checking the version, because the seccomp filter of the container may forbid
	// them.
	k := kernel{abi: landlockABI()}
	osthread.Own(func() {
		if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
			return
		}
		k.seccomp = allowAll().loadFilter() == nil
		if k.abi > 0 && tryRestrict() != nil {
			k.abi = 0
		}
	})
	return k
}

// landlockABI returns the version of the kernel's Landlock interface. It returns 0 if the kernel does not support
// Landlock.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// tryRestrict finds out whether Landlock works. It puts the calling thread into a domain that only forbids creating
// block devices, which this program never does.
func tryRestrict() error {
	fd, err := createRuleset(&unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return restrictSelf(fd)
}

// createRuleset wraps the system call, for which golang.org/x/sys provides no function.
func createRuleset(attr *unix.LandlockRulesetAttr) (fd int, err error) {
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0) //nolint:gosec // there is no other way to pass it
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
