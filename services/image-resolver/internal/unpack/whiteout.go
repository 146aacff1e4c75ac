// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Names by which layers hide what lower ones have.
const (
	whiteoutPrefix = ".wh."
	opaque         = ".wh..wh..opq"
	internal       = ".wh..wh." // what some builders left in layers for themselves
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

// isOverlayWhiteout reports whether an entry is what overlayfs, whose directories some builders archive, has in place
// of a file that is hidden.
func isOverlayWhiteout(header *tar.Header) bool {
	return header.Typeflag == tar.TypeChar && header.Devmajor == 0 && header.Devminor == 0
}

// hide removes what lower layers have at a name in dir.
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

// clear removes what is in a directory, except what the present layer has written.
func (t *Tree) clear(dir string) error {
	if !t.layer.clear(dir) {
		return nil // there is nothing of lower layers any more
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
