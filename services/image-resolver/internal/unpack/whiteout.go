// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Names by which layers hide entries of lower layers.
const (
	whiteoutPrefix = ".wh."
	opaque         = ".wh..wh..opq"
	internal       = ".wh..wh." // leftovers of some builders
)

// whiteout returns the name that an entry hides; "." is all of its directory, and empty is nothing.
func whiteout(base string) (hidden string, ok bool) {
	switch {
	case base == opaque:
		return ".", true
	case strings.HasPrefix(base, internal):
		return "", true
	}
	hidden, ok = strings.CutPrefix(base, whiteoutPrefix)
	if ok && hidden == "" {
		hidden = ".." // rejected
	}
	return hidden, ok
}

// isOverlayWhiteout reports whether an entry is overlayfs's form of a whiteout: some builders archive its directories.
func isOverlayWhiteout(header *tar.Header) bool {
	return header.Typeflag == tar.TypeChar && header.Devmajor == 0 && header.Devminor == 0
}

// hide removes the lower layers' entry at a name in dir.
func (t *Tree) hide(entry, dir, name string) error {
	if err := t.count(entry); err != nil {
		return err
	}
	switch name {
	case "":
		return nil
	case ".":
		return t.clear(dir)
	case "..":
		return rejected(entry, "hides nothing that could be there")
	}
	at := path.Join(dir, name)
	if t.layer.has(at) {
		return t.clear(at)
	}
	return t.remove(at)
}

// clear removes the content of a directory, except the present layer's own entries.
func (t *Tree) clear(dir string) error {
	if !t.layer.clear(dir) {
		return nil // lower layers have no entries left
	}
	entries, err := fs.ReadDir(t.root.FS(), dir)
	if err != nil {
		return nil //nolint:nilerr // this layer has put a file at the place, which stays
	}
	var failed error
	for _, entry := range entries {
		at := path.Join(dir, entry.Name())
		switch {
		case !t.layer.has(at):
			failed = errors.Join(failed, t.remove(at))
		case entry.IsDir():
			failed = errors.Join(failed, t.clear(at))
		}
	}
	return failed
}
