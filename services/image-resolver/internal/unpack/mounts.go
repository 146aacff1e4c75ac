// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Mountpoints creates the directories and files on which a sandbox mounts file systems, because the sandbox's root
// file system is read-only. It replaces existing entries of another type.
func (t *Tree) Mountpoints(directories, files []string) error {
	for _, name := range directories {
		if err := t.makeMountpoint(name, tar.TypeDir); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := t.makeMountpoint(name, tar.TypeReg); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) makeMountpoint(name string, kind byte) error {
	name, err := cleanName(name)
	if err != nil || name == "." {
		return err
	}
	dir, err := t.resolveDirectory(path.Dir(name))
	if err != nil {
		return err
	}
	at := path.Join(dir, path.Base(name))
	if info, err := t.root.Lstat(at); err == nil && kind == tar.TypeReg && info.Mode().IsRegular() {
		return nil
	}
	return t.writeEntry(&tar.Header{Name: name, Typeflag: kind}, at, strings.NewReader(""))
}

// maxLines is the maximum size of a file that AddLines changes, in bytes.
const maxLines = 1 << 20

// AddLines appends lines to a text file of the image, such as /etc/passwd. The callback missing gets the file's content
// and returns the lines to append. A missing file is created. Links and files over 1 MiB stay unchanged.
func (t *Tree) AddLines(name string, missing func(content string) string) error {
	dir, err := t.resolveDirectory(path.Dir(name))
	if err != nil {
		return err
	}
	at := path.Join(dir, path.Base(name))
	var content []byte
	switch info, err := t.root.Lstat(at); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxLines:
		return nil
	default:
		if content, err = t.root.ReadFile(at); err != nil {
			return err
		}
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(content, '\n')
	}
	lines := missing(string(content))
	if lines == "" {
		return nil
	}
	all := string(content) + lines
	return t.writeEntry(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(all))}, at, strings.NewReader(all))
}

// Directory creates a missing directory of the image, such as its working directory. A symbolic link to a directory
// stays unchanged.
func (t *Tree) Directory(name string) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	_, err = t.resolveDirectory(name)
	return err
}
