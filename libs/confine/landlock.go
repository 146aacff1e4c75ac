// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// probeKernel detects the restrictions that the kernel supports, by trying them on a separate thread.
func probeKernel() kernel {
	// We try the system calls instead of checking the kernel's version, because the container's seccomp filter may forbid
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

// landlockABI returns the version of the kernel's Landlock interface, or 0 if the kernel does not support Landlock.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// tryRestrict returns an error if Landlock does not work. As a test, it puts the calling thread into a Landlock domain.
// The domain only forbids creating block devices, so it never affects this program.
func tryRestrict() error {
	fd, err := createRuleset(&unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return restrictSelf(fd)
}

// createRuleset calls landlock_create_ruleset directly, because golang.org/x/sys provides no function for it.
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

// ruleset is the file descriptor of the Landlock ruleset with the file rules of a process.
type ruleset struct{ fd int }

// noRules is the ruleset that is used on kernels without Landlock. It restricts nothing.
var noRules = ruleset{-1}

// newRules returns the Landlock rules for a process of fn that may use the temporary directory temp.
func (c *Confiner) newRules(fn Function, temp *TempDir) (ruleset, error) {
	if c.kernel.abi < abiFiles {
		return noRules, nil
	}
	fd, err := createRuleset(c.kernel.rulesetAttributes())
	if err != nil {
		return noRules, fmt.Errorf("make the Landlock rules of a function: %w", err)
	}
	r := ruleset{fd}
	program := fn.Path
	if !filepath.IsAbs(program) {
		program = filepath.Join(fn.Dir, program)
	}
	private := fileRules(nil).addPath(program, readFile) // a missing program gets no rule; its start fails later
	for _, path := range fn.Readable {
		private = private.addPath(path, readDir)
	}
	if temp != nil {
		private = private.addPath(temp.path, own)
	}
	defer private.closeFiles()
	err = errors.Join(r.addRules(c.kernel, c.files), r.addRules(c.kernel, private))
	if fn.Shared {
		err = errors.Join(err, r.addRules(c.kernel, c.sharedRules))
	}
	return r, err
}

func (r ruleset) addRules(k kernel, rules fileRules) error {
	for _, rule := range rules {
		attr := unix.LandlockPathBeneathAttr{
			Allowed_access: rule.access & k.supportedRights(), Parent_fd: int32(rule.file.Fd()),
		}
		if err := addRule(r.fd, &attr); err != nil {
			return fmt.Errorf("allow %s in the Landlock rules of a function: %w", rule.file.Name(), err)
		}
	}
	return nil
}

// rulesetAttributes returns the access rights that a new Landlock domain denies unless a rule allows them. It
// leaves out rights that this kernel does not support.
func (k kernel) rulesetAttributes() *unix.LandlockRulesetAttr {
	attr := &unix.LandlockRulesetAttr{Handled_access_fs: k.supportedRights()}
	if k.abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return attr
}

func (k kernel) supportedRights() uint64 {
	rights := uint64(handled)
	if k.abi < abiRefer {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER // these kernels always forbid it
	}
	if k.abi < abiTruncate {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE // the seccomp filter forbids truncate instead
	}
	if k.abi < abiIoctl {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // functions cannot open devices with dangerous ioctls
	}
	return rights
}

// enforceRules puts the calling thread into a new Landlock domain with these rules.
func (r ruleset) enforceRules() error {
	if r.fd < 0 {
		return nil
	}
	return restrictSelf(r.fd)
}

func (r ruleset) close() {
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
	}
}
