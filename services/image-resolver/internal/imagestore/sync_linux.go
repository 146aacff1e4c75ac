// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll flushes the whole file system that contains the file to the disk.
func syncAll(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	if err := raw.Control(func(fd uintptr) { syncErr = unix.Syncfs(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("syncfs", syncErr)
}
