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

// whiteoutTarget returns the name that a whiteout hides. The name "." means all entries of the directory. If the name
// is empty, the whiteout hides nothing.
func whiteoutTarget(base string) (hidden string, ok bool) {
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

// isOverlayWhiteout reports whether an entry is a whiteout in overlayfs's form, because some builders archive the
// directories of overlayfs.
func isOverlayWhiteout(header *tar.Header) bool {
	return header.Typeflag == tar.TypeChar && header.Devmajor == 0 && header.Devminor == 0
}

// hideEntry removes the lower layers' entry at a name in dir.
func (t *Tree) hideEntry(entry, dir, name string) error {
	if err := t.countEntry(entry); err != nil {
		return err
	}
	switch name {
	case "":
		return nil
	case ".":
		return t.clearLower(dir)
	case "..":
		return rejectEntry(entry, "hides nothing that could be there")
	}
	at := path.Join(dir, name)
	if t.layer.hasPath(at) {
		return t.clearLower(at)
	}
	return t.removeEntry(at)
}

// clearLower removes the content of a directory, except the present layer's own entries.
func (t *Tree) clearLower(dir string) error {
	if !t.layer.markCleared(dir) {
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
		case !t.layer.hasPath(at):
			failed = errors.Join(failed, t.removeEntry(at))
		case entry.IsDir():
			failed = errors.Join(failed, t.clearLower(at))
		}
	}
	return failed
}
