// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ruleset is the Landlock rules of one process.
type ruleset struct{ fd int }

// noRules is where there is no Landlock.
var noRules = ruleset{-1}

// rules returns the rules of a process that runs fn, with its temporary directory.
func (c *Confiner) rules(fn Function, temp *TempDir) (ruleset, error) {
	if c.kernel.abi < abiFiles {
		return noRules, nil
	}
	fd, err := createRuleset(c.kernel.attributes())
	if err != nil {
		return noRules, fmt.Errorf("make the Landlock rules of a function: %w", err)
	}
	r := ruleset{fd}
	program := fn.Path
	if !filepath.IsAbs(program) {
		program = filepath.Join(fn.Dir, program)
	}
	private := fileRules(nil).add(program, readFile) // no rule if the program is missing: the start reports that
	for _, path := range fn.Readable {
		private = private.add(path, readDir)
	}
	if temp != nil {
		private = private.add(temp.path, own)
	}
	defer private.close()
	err = errors.Join(r.add(c.kernel, c.files), r.add(c.kernel, private))
	if fn.Shared {
		err = errors.Join(err, r.add(c.kernel, c.sharedRules))
	}
	return r, err
}

func (r ruleset) add(k kernel, rules fileRules) error {
	if r.fd < 0 {
		return nil
	}
	for _, rule := range rules {
		attr := unix.LandlockPathBeneathAttr{Allowed_access: rule.access & k.handled(), Parent_fd: int32(rule.file.Fd())}
		if err := addRule(r.fd, &attr); err != nil {
			return fmt.Errorf("allow %s in the Landlock rules of a function: %w", rule.file.Name(), err)
		}
	}
	return nil
}

// attributes returns what a domain forbids on this kernel, as far as no rule allows it.
func (k kernel) attributes() *unix.LandlockRulesetAttr {
	attr := &unix.LandlockRulesetAttr{Handled_access_fs: k.handled()}
	if k.abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return attr
}

// handled returns the rights to files that this kernel knows.
func (k kernel) handled() uint64 {
	rights := uint64(handled)
	if k.abi < abiRefer {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER // always forbidden there
	}
	if k.abi < abiTruncate {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE // the filter does it
	}
	if k.abi < abiIoctl {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // no device can be opened on which it would matter
	}
	return rights
}

// enforce puts the calling thread into a new domain.
func (r ruleset) enforce() error {
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
