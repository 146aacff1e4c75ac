// SPDX-License-Identifier: Apache-2.0

package registrycache

import (
	"io/fs"
	"os"
	"path/filepath"
)

// linked is the minimum size in bytes of files that are hard-linked instead of copied. Files of this size are blobs,
// which registries never change. Smaller files may store the digest of a tag. They must be copied, because registries
// change these files.
const linked = 64 << 10

// uploads is the name of directories in which registries store unfinished uploads.
const uploads = "_uploads"

// copyTree copies a registry's directory, except for unfinished uploads.
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

// copyFile copies a file. If both directories are on the same file system, it creates a hard link to a large file.
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
