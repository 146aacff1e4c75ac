// SPDX-License-Identifier: Apache-2.0

package registrycache

import (
	"io/fs"
	"os"
	"path/filepath"
)

// linked is the minimum size of files that are hard-linked instead of copied. Linking is safe for large files: they
// are blobs, and a registry never writes to a stored blob again. The small files that contain the digest of a tag
// must be copied because the registry changes them.
const linked = 64 << 10

// uploads is the name of the directory where registries store unfinished uploads.
const uploads = "_uploads"

// copyTree copies the files of a registry's directory to another directory, except for unfinished uploads.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir() && entry.Name() == uploads:
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o750)
		default:
			return copyFile(path, target, entry)
		}
	})
}

// copyFile copies a file. It links a large file instead if both directories are on the same file system.
func copyFile(from, to string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Size() >= linked {
		if err := os.Link(from, to); err == nil || os.IsExist(err) {
			return nil
		}
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}
