// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mayUse reports whether this program may make groups in a directory. Users may write what is delegated to them. Root
// may write everything, such as the slice of all services, where its groups would be outside of its own unit's limits:
// systemd marks what it delegates.
func mayUse(top, dir string) bool { return mayMake(dir) && (os.Geteuid() != 0 || marked(top, dir)) }

// marked reports whether systemd has delegated a directory, or one above it.
func marked(top, dir string) bool {
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		for _, name := range []string{"trusted.delegate", "user.delegate"} {
			value := make([]byte, 1)
			if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
				return true
			}
		}
	}
	return false
}
