// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/confine"
)

// writeFilter writes the seccomp filter to a file in memory, and returns its path. Each sandbox must open the path
// itself. A shared file descriptor has a single read position, and only the first sandbox would read the whole file.
func (l *Launcher) writeFilter() (path string, err error) {
	content, err := confine.SandboxFilter()
	if err != nil {
		return "", err
	}
	fd, err := unix.MemfdCreate("seccomp", unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("write the seccomp filter of sandboxes: %w", os.NewSyscallError("memfd_create", err))
	}
	l.file = os.NewFile(uintptr(fd), "seccomp filter")
	_, err = l.file.Write(content)
	return fmt.Sprintf("/proc/self/fd/%d", fd), err
}

// ociSeccomp returns the seccomp filter in the format of the OCI runtimes crun, runc and runsc.
func ociSeccomp() ([]byte, error) { return confine.OCISeccomp() }
