// SPDX-License-Identifier: Apache-2.0

package registrycache

import (
	"io/fs"
	"os"
	"path/filepath"
)

// linked is the size from which files are linked and not copied. A registry renames a blob into its
// place and never writes to it again, as it does to the small files that name the digest of a tag.
const linked = 64 << 10

// uploads is the directory in which registries keep unfinished uploads.
const uploads = "_uploads"

// copyTree copies the files of a directory into an existing directory.
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

// copyFile links a large file if both directories are on the same file system.
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
