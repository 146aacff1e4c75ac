// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// copyTree copies the files below a directory. If some files cannot be read, it copies the rest and then returns the
// errors. It ignores files that are deleted during the copy, such as logs of pods.
func copyTree(from, to string) error {
	var failed error
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if err := copyFile(path, filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		return nil
	})
	return errors.Join(failed, err)
}

// copyFile copies a file, even if another process writes to it. It does not rely on the file's size, which is zero for
// files in /proc.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return write(to, content)
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep evidence: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("keep evidence: %w", err)
	}
	return nil
}
