// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll writes everything to the disk that the file's file system has in memory.
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
