// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"path"
	"strings"
)

// Mountpoints makes directories and empty files where they are missing, at which a read-only root
// file system gets something mounted. What else is at their place is removed.
func (t *Tree) Mountpoints(directories, files []string) error {
	for _, name := range directories {
		if err := t.mountpoint(name, tar.TypeDir); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := t.mountpoint(name, tar.TypeReg); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) mountpoint(name string, kind byte) error {
	name, err := clean(name)
	if err != nil || name == "." {
		return err
	}
	dir, err := t.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	at := path.Join(dir, path.Base(name))
	if info, err := t.root.Lstat(at); err == nil && kind == tar.TypeReg && info.Mode().IsRegular() {
		return nil
	}
	return t.write(&tar.Header{Name: name, Typeflag: kind}, at, strings.NewReader(""))
}

// Directory makes a directory where it is missing, such as an image's working directory. A symbolic
// link to a directory of the image is one too.
func (t *Tree) Directory(name string) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	_, err = t.resolve(name)
	return err
}
