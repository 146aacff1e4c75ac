// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the layers of a container image into a directory, as a single root file system. It does not
// trust the layers. No name or link makes it write outside of the directory, and the size of the files is limited.
// Callers must unpack layers from the lowest to the highest. If a higher layer replaces a file, other hard links to
// the file keep the old content. Owners and most modes are ignored, because an unprivileged user reads the files.
// Every file is readable, and executable if its owner may execute it. No file is set-uid.
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

// Modes of all unpacked directories, files and executable files.
const (
	modeDir     = 0o755
	modeFile    = 0o444
	modeProgram = 0o555
)

// entryBytes is the disk space that we assume for each file, directory or link, in bytes. The content of a file is
// counted in addition, with its size rounded up to a multiple of entryBytes.
const entryBytes = 4 << 10

// Limits bounds the disk space and the number of files of an unpacked image.
type Limits struct {
	// Bytes is the maximum disk space of the unpacked image, in bytes.
	Bytes int64
	// Files is the maximum number of files, directories and links in the unpacked image.
	Files int64
}

// Tree is an image that is being unpacked into a directory. Only a single goroutine may use it.
type Tree struct {
	root   *os.Root
	limits Limits
	bytes  int64
	files  int64
	steps  int64 // total number of directories on the paths of all entries
	// read is the number of uncompressed bytes that were read from all layers so far.
	read int64
	// buffer is a reusable buffer for the content of files.
	buffer []byte
	// layer contains the paths that the current layer has written. Whiteouts in the same layer must not remove them.
	layer paths
	// last caches the most recently resolved directory, because the next entry is often in the same directory. The field
	// name is its path in the layer. The field dir is the same path with all symbolic links resolved.
	last struct{ name, dir string }
}

// New returns a Tree that unpacks an image into the empty directory root. Nothing else may write to the directory.
func New(root *os.Root, limits Limits) *Tree {
	t := &Tree{root: root, limits: limits, buffer: make([]byte, holeBytes), layer: newPaths()}
	t.last.name, t.last.dir = ".", "."
	return t
}

// Bytes returns an upper bound of the disk space that the image uses so far.
func (t *Tree) Bytes() int64 { return t.bytes }

// Files returns the number of files, directories and links that were written so far.
func (t *Tree) Files() int64 { return t.files }

// Layer unpacks the next layer, an uncompressed tar archive. It returns an error of class fault.Precondition if the
// archive is invalid or exceeds the limits. After an error, callers must not use the tree.
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

// brokenArchive wraps err in an error of class fault.Precondition about an invalid archive. It returns err
// unchanged if err already has a class.
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

// writeEntry writes a file, directory or link at the path at. Parent directories must exist and be no symbolic links.
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

// countEntry counts a file, directory or link, and returns an error if the image exceeds its limits.
func (t *Tree) countEntry(name string) error {
	t.files++
	if t.files > t.limits.Files {
		return fault.New(fault.Precondition, "it has more than %d files, which is the limit", t.limits.Files)
	}
	return t.countBytes(name, entryBytes)
}

// countBytes adds bytes to the image's disk space, or returns an error if this exceeds the limit. The argument name is
// the current entry of the layer, which the error quotes.
func (t *Tree) countBytes(name string, bytes int64) error {
	if bytes > t.limits.Bytes-t.bytes {
		return fault.New(fault.Precondition, "with %s it takes more than %d MiB unpacked, which is the limit",
			quoteLink(name), t.limits.Bytes>>20)
	}
	t.bytes += bytes
	return nil
}

// makeDirectory creates a directory of the image. An existing directory keeps its content.
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

// removeForEntry removes an existing file or directory, so that a new entry can be written at its path.
func (t *Tree) removeForEntry(at string) error {
	t.layer.addPath(at)
	if _, err := t.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return t.removeEntry(at)
}

// removeEntry removes a file, or a directory with its content. It does nothing if the path does not exist.
func (t *Tree) removeEntry(at string) error {
	t.last.name, t.last.dir = ".", "." // the directory in last may be removed
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

// holeBytes is the block size of sparse files, in bytes. A block of zeros is not written, and becomes a hole.
const holeBytes = 64 << 10

var zeros [holeBytes]byte

// copyContent writes a sparse file, so that zeros need no disk space. Some images contain gigabytes of zeros in
// files such as /var/log/lastlog.
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

// readFrom reads an archive. It assigns the class fault.Precondition to read errors, to distinguish them from errors of
// writing to the disk.
type readFrom struct{ io.Reader }

func (r readFrom) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = brokenArchive(err)
	}
	return n, err
}

// rejectEntry returns the error for an entry that must not be unpacked. The text begins with "its entry NAME" and
// continues with the format string why.
func rejectEntry(name, why string, args ...any) error {
	return fault.New(fault.Precondition, "its entry %s "+why, append([]any{quoteLink(name)}, args...)...)
}

// unfitting contains the system errors for file names and links that the file system does not support.
var unfitting = []error{syscall.ENAMETOOLONG, syscall.EMLINK, syscall.ELOOP, syscall.EILSEQ, syscall.EINVAL}

// rejectUnfit rejects the entry if err shows that the file system does not support its name or link. The new
// error is of class fault.Precondition, because the image causes it. Other errors are returned unchanged.
func rejectUnfit(name string, err error) error {
	for _, reason := range unfitting {
		if errors.Is(err, reason) && fault.Of(err) == fault.Internal {
			return rejectEntry(name, "has a name or a link that the file system does not take: %w", reason)
		}
	}
	return err
}

// maxQuoted is the maximum length of a file name in an error message, in bytes.
const maxQuoted = 200

func quoteLink(name string) string { return strconv.Quote(excerpt.Middle(name, maxQuoted)) }
