// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install implements the applet "wrapper-server install DIR", for init containers. It copies this binary to
// DIR/wrapper-server, and creates DIR/grpc-health-probe as a link to the copy.
func Install(args []string) int {
	if len(args) != 1 {
		complain("wrapper-server install", "usage: wrapper-server install DIR")
		return 2
	}
	if err := installProgram(args[0]); err != nil {
		complain("wrapper-server install", "%v", err)
		return 1
	}
	return 0
}

func installProgram(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // every user of the pod runs what is in it
		return err
	}
	target := filepath.Join(dir, "wrapper-server")
	if err := copyFile(self, target, 0o755); err != nil {
		return err
	}
	return relink("wrapper-server", filepath.Join(dir, "grpc-health-probe"))
}

// copyFile copies a file's content to a new file with the given mode. It replaces an existing file atomically, even
// if a process is executing that file.
func copyFile(from, to string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	tmp, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // no effect after the rename below
	_, err = io.Copy(tmp, src)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return os.Rename(tmp.Name(), to)
}

// relink creates the symbolic link name to target. It replaces an existing file of that name.
func relink(target, name string) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(target, name)
}
