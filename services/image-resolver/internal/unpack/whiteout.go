// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"hash/maphash"
	"io/fs"
	"path"
	"strings"
)

// Names of whiteouts. A whiteout is a file in a layer that marks files of lower layers as deleted.
const (
	whiteoutPrefix = ".wh."
	opaque         = ".wh..wh..opq"
	internal       = ".wh..wh." // prefix of files that some builders leave behind
)

// whiteoutTarget returns the name of the entry that a whiteout hides. The name is "." if the whiteout hides everything
// in its directory, and empty if it hides nothing. If the file base is not a whiteout, ok is false.
func whiteoutTarget(base string) (hidden string, ok bool) {
	switch {
	case base == opaque:
		return ".", true
	case strings.HasPrefix(base, internal):
		return "", true
	}
	hidden, ok = strings.CutPrefix(base, whiteoutPrefix)
	if ok && hidden == "" {
		hidden = ".." // hideEntry rejects this name
	}
	return hidden, ok
}

// isOverlayWhiteout reports whether an entry is a whiteout of overlayfs, a character device with number 0/0. Some image
// builders do not convert such devices to the whiteouts of OCI layers.
func isOverlayWhiteout(header *tar.Header) bool {
	return header.Typeflag == tar.TypeChar && header.Devmajor == 0 && header.Devminor == 0
}

// hideEntry removes the entry name in the directory dir, which a whiteout hides. It keeps all entries that the current
// layer has written. The parameter entry is the path of the whiteout itself, for error messages.
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

// clearLower removes the entries of a directory, except for entries that the current layer has written.
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

// paths is the set of paths that a layer has written, including parent directories. It stores only hashes, because a
// layer may contain hundreds of thousands of paths of up to 4 KiB. A random seed prevents deliberate collisions.
type paths struct {
	seed    maphash.Seed
	written map[uint64]struct{}
	// cleared contains the directories from which all files of lower layers were removed.
	cleared map[uint64]struct{}
}

func newPaths() paths {
	return paths{seed: maphash.MakeSeed(), written: map[uint64]struct{}{}, cleared: map[uint64]struct{}{}}
}

// addPath records a path that the current layer has written, and its parent directories.
func (p paths) addPath(at string) {
	for ; at != "." && !p.hasPath(at); at = path.Dir(at) {
		p.written[maphash.String(p.seed, at)] = struct{}{}
	}
}

// hasPath reports whether the current layer has written a file or directory at the path, or below it.
func (p paths) hasPath(at string) bool {
	_, ok := p.written[maphash.String(p.seed, at)]
	return ok
}

// markCleared records that dir contains no files of lower layers. It reports whether this is the first call for dir.
func (p paths) markCleared(dir string) bool {
	key := maphash.String(p.seed, dir)
	if _, ok := p.cleared[key]; ok {
		return false
	}
	p.cleared[key] = struct{}{}
	return true
}
