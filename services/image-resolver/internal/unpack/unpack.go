// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the layers of a container image into a directory, as a single root file system. We do not
// trust the layers: no name or link makes the package write outside of the directory, and the size is bounded.
//
// Callers apply layers from the lowest to the highest, so that hard links keep the content of their layer. The
// package ignores the owners and most modes in the layers, because an unprivileged user reads the files. Every file
// is readable, a file that its owner may execute is executable, and no file is set-uid.
package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Modes of everything that is written.
const (
	modeDir     = 0o755
	modeFile    = 0o444
	modeProgram = 0o555
)

// entryBytes is the disk space of an entry, and the block size of content.
const entryBytes = 4 << 10

// Limits bound an unpacked image.
type Limits struct {
	// Bytes is the maximum disk space of all files that are written, in bytes.
	Bytes int64
	// Files is the maximum number of files, directories and links.
	Files int64
}

// Tree is an image that is being unpacked. Only a single goroutine may use it.
type Tree struct {
	root   *os.Root
	limits Limits
	bytes  int64
	files  int64
	steps  int64 // total number of directories on the paths of all entries
	// read is the number of uncompressed bytes of all layers so far.
	read int64
	// buffer is for the content of files.
	buffer []byte
	// layer contains the paths that the present layer has written, which its whiteouts keep.
	layer paths
	// last is the last resolved directory: its name in the layer, and its path without links.
	last struct{ name, dir string }
}

// New returns a tree in root, which must be empty. Nothing else may write to root.
func New(root *os.Root, limits Limits) *Tree {
	t := &Tree{root: root, limits: limits, buffer: make([]byte, holeBytes), layer: newPaths()}
	t.last.name, t.last.dir = ".", "."
	return t
}

// Bytes returns the maximum disk space of everything that was written so far.
func (t *Tree) Bytes() int64 { return t.bytes }

// Files returns the number of files, directories and links.
func (t *Tree) Files() int64 { return t.files }

// Layer applies the next layer, an uncompressed tar archive. An archive that must not be applied is an error of class
// fault.Precondition. After an error, the tree is unusable.
func (t *Tree) Layer(ctx context.Context, archive io.Reader) error {
	t.layer = newPaths()
	entries := tar.NewReader(archive)
	for {
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return brokenArchive(err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err := t.addEntry(header, entries); err != nil {
			return rejectUnfit(header.Name, err)
		}
	}
}

// brokenArchive classifies an error of reading an archive. It keeps the class of the source's errors.
func brokenArchive(err error) error {
	if fault.Of(err) != fault.Internal {
		return err
	}
	return fault.New(fault.Precondition, "a layer is not a valid tar archive: %w", err)
}

func (t *Tree) addEntry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := cleanName(header.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return rejectEntry(header.Name, "is not a directory, and takes the place of the image's root")
		}
		return nil
	}
	dir, err := t.resolveDirectory(path.Dir(name))
	if err != nil {
		return err
	}
	if isOverlayWhiteout(header) {
		return t.hideEntry(header.Name, dir, path.Base(name))
	}
	if hidden, ok := whiteoutTarget(path.Base(name)); ok {
		return t.hideEntry(header.Name, dir, hidden)
	}
	return t.writeEntry(header, path.Join(dir, path.Base(name)), content)
}

// writeEntry writes an entry to the path at, whose directory is resolved.
func (t *Tree) writeEntry(header *tar.Header, at string, content io.Reader) error {
	if err := t.countEntry(header.Name); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		return t.makeDirectory(at)
	}
	if header.Typeflag == tar.TypeLink {
		return t.hardLink(header, at)
	}
	if err := t.removeForEntry(at); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return t.writeFile(header, at, content)
	case tar.TypeSymlink:
		return t.symbolicLink(header, at)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return nil // unprivileged users cannot create devices, and sandboxes have their own
	default:
		return rejectEntry(header.Name, "has the unknown type %c", header.Typeflag)
	}
}

// countEntry counts an entry against the limits.
func (t *Tree) countEntry(name string) error {
	t.files++
	if t.files > t.limits.Files {
		return fault.New(fault.Precondition, "it has more than %d files, which is the limit", t.limits.Files)
	}
	return t.countBytes(name, entryBytes)
}

// countBytes adds bytes to the size of the tree. It returns an error if the tree exceeds its limit.
func (t *Tree) countBytes(name string, bytes int64) error {
	if bytes > t.limits.Bytes-t.bytes {
		return fault.New(fault.Precondition, "with %s it takes more than %d MiB unpacked, which is the limit",
			quoteLink(name), t.limits.Bytes>>20)
	}
	t.bytes += bytes
	return nil
}

// makeDirectory makes a directory, or keeps an existing directory.
func (t *Tree) makeDirectory(at string) error {
	t.layer.addPath(at)
	info, err := t.root.Lstat(at)
	if err == nil && info.IsDir() {
		return nil
	}
	if err := t.removeForEntry(at); err != nil {
		return err
	}
	return makeOpenDirectory(t.root, at)
}

// makeOpenDirectory creates a directory that every user can read, regardless of this program's umask.
func makeOpenDirectory(root *os.Root, at string) error {
	if err := root.Mkdir(at, modeDir); err != nil {
		return err
	}
	return root.Chmod(at, modeDir)
}

// removeForEntry removes an existing entry before the next entry replaces it.
func (t *Tree) removeForEntry(at string) error {
	t.layer.addPath(at)
	if _, err := t.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return t.removeEntry(at)
}

// removeEntry removes a file, or a directory with its content, if it exists.
func (t *Tree) removeEntry(at string) error {
	t.last.name, t.last.dir = ".", "." // the last directory may be gone
	return t.root.RemoveAll(at)
}

func (t *Tree) writeFile(header *tar.Header, at string, content io.Reader) error {
	if header.Size < 0 || header.Size > t.limits.Bytes {
		return t.countBytes(header.Name, max(header.Size, t.limits.Bytes))
	}
	if err := t.countBytes(header.Name, (header.Size+entryBytes-1)/entryBytes*entryBytes); err != nil {
		return err
	}
	mode := fs.FileMode(modeFile)
	if header.Mode&0o100 != 0 {
		mode = modeProgram
	}
	file, err := t.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	return errors.Join(t.copyContent(file, readFrom{content}), file.Chmod(mode), file.Close())
}

// holeBytes is the granularity of holes.
const holeBytes = 64 << 10

var zeros [holeBytes]byte

// copyContent writes the content of a file. It leaves holes for zeros, because some images contain gigabytes of zeros
// in files such as /var/log/lastlog.
func (t *Tree) copyContent(file *os.File, content io.Reader) error {
	for at := int64(0); ; {
		n, err := io.ReadFull(content, t.buffer)
		if part := t.buffer[:n]; !bytes.Equal(part, zeros[:n]) {
			if _, err := file.WriteAt(part, at); err != nil {
				return err
			}
		}
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return file.Truncate(at)
		case err != nil:
			return err
		}
	}
}

// readFrom is a reader whose errors count as errors of the archive, in contrast to errors of the destination.
type readFrom struct{ io.Reader }

func (r readFrom) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = brokenArchive(err)
	}
	return n, err
}

// rejectEntry is the error for an entry that must not be written.
func rejectEntry(name, why string, args ...any) error {
	return fault.New(fault.Precondition, "its entry %s "+why, append([]any{quoteLink(name)}, args...)...)
}

// unfitting are the errors of file systems about names and links that they do not support.
var unfitting = []error{syscall.ENAMETOOLONG, syscall.EMLINK, syscall.ELOOP, syscall.EILSEQ, syscall.EINVAL}

// rejectUnfit rejects an entry with an unsupported name or link. It returns other errors unchanged.
func rejectUnfit(name string, err error) error {
	for _, reason := range unfitting {
		if errors.Is(err, reason) && fault.Of(err) == fault.Internal {
			return rejectEntry(name, "has a name or a link that the file system does not take: %w", reason)
		}
	}
	return err
}

// maxQuoted bounds the quotation of an image in an error, in bytes.
const maxQuoted = 200

func quoteLink(name string) string { return strconv.Quote(excerpt.Middle(name, maxQuoted)) }
