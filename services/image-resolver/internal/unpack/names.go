// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits for the paths in a layer. Linux rejects paths longer than 4096 bytes. The number of directories on a path is
// limited because this package opens each of them, with several system calls.
const (
	maxName  = 4096 // bytes of a path
	maxDepth = 128  // directories
	maxLinks = 40   // symbolic links, as in Linux
	// maxSteps limits the directories that are visited to resolve a path with symbolic links. All paths of an image
	// together may visit stepsPerFile directories for each file that the image may have.
	maxSteps     = 1024
	stepsPerFile = 32
)

// cleanName returns the normalized path of an entry, relative to the image's root. It rejects paths that contain "..".
// Like container runtimes, it permits a leading slash. For example, the builder ko writes such paths.
func cleanName(name string) (string, error) {
	if len(name) > maxName {
		return "", rejectEntry(name, "has a name of more than %d bytes", maxName)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", rejectEntry(name, `leads out of the image with ".."`)
	}
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if strings.ContainsRune(cleaned, 0) {
		return "", rejectEntry(name, "has a zero byte in its name")
	}
	return cleaned, nil
}

// resolveDirectory returns the path of the directory dir with all symbolic links resolved inside the image, as in a
// container. It creates missing directories.
func (t *Tree) resolveDirectory(dir string) (string, error) {
	if dir == t.last.name {
		return t.last.dir, nil
	}
	w := &walk{root: t.root, at: "."}
	defer w.returnToRoot()
	links, rest := 0, strings.Split(dir, "/")
	for steps := 0; len(rest) > 0; steps++ {
		if steps == maxSteps {
			return "", rejectEntry(dir, "is behind symbolic links that take too many steps")
		}
		if t.steps++; t.steps/stepsPerFile > t.limits.Files {
			const text = "and those before it are behind more than %d steps for each file that an image may have"
			return "", rejectEntry(dir, text, stepsPerFile)
		}
		target, err := t.followPart(w, dir, rest[0])
		if err != nil {
			return "", err
		}
		rest = rest[1:]
		if target == "" {
			continue
		}
		if links++; links > maxLinks {
			return "", rejectEntry(dir, "is behind too many symbolic links")
		}
		if path.IsAbs(target) {
			w.returnToRoot()
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	t.last.name, t.last.dir = dir, w.at
	return w.at, nil
}

// followPart enters the next directory of a path. If part is a symbolic link, it returns the link's target instead.
func (t *Tree) followPart(w *walk, dir, part string) (target string, err error) {
	switch {
	case part == "" || part == ".":
		return "", nil
	case part == ".." && w.at == ".":
		return "", rejectEntry(dir, "leads out of the image by a symbolic link")
	case part == "..":
		w.leave()
		return "", nil
	}
	next := path.Join(w.at, part)
	if len(next) > maxName || strings.Count(next, "/") >= maxDepth {
		const text = "is below more than %d directories, or at a path of more than %d bytes"
		return "", rejectEntry(dir, text, maxDepth, maxName)
	}
	if target, err = t.enterDirectory(w.dir(), next); err != nil || target != "" {
		return target, err
	}
	return "", w.enter(part)
}

// enterDirectory creates the directory at in its open parent directory, unless it exists. If at is a symbolic link,
// enterDirectory returns the link's target. Otherwise, the result target is empty.
func (t *Tree) enterDirectory(above *os.Root, at string) (target string, err error) {
	name := path.Base(at)
	info, err := above.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.countEntry(at); err != nil {
			return "", err
		}
		return "", makeOpenDirectory(above, name)
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return above.Readlink(name)
	case !info.IsDir():
		return "", rejectEntry(at, "is a file, and has entries below it")
	}
	return "", nil
}

// symbolicLink creates a symbolic link. It rejects a relative target outside of the image. It permits every absolute
// target, because containers resolve absolute targets inside the image.
func (t *Tree) symbolicLink(header *tar.Header, at string) error {
	target := header.Linkname
	if target == "" || len(target) >= maxName {
		return rejectEntry(header.Name, "is a symbolic link with no target, or with one of %d bytes or more", maxName)
	}
	if !path.IsAbs(target) {
		reached := path.Join(path.Dir(at), target) //nolint:gosec // what leads out is rejected below
		if reached == ".." || strings.HasPrefix(reached, "../") {
			return rejectEntry(header.Name, "is a symbolic link to %s, out of the image", quoteLink(target))
		}
	}
	return t.root.Symlink(target, at)
}

// hardLink creates a hard link to a file that the image already contains.
func (t *Tree) hardLink(header *tar.Header, at string) error {
	name, err := cleanName(header.Linkname)
	if err != nil {
		return rejectEntry(header.Name, "is a hard link to %s, out of the image", quoteLink(header.Linkname))
	}
	dir, err := t.resolveDirectory(path.Dir(name))
	if err != nil {
		return err
	}
	target := path.Join(dir, path.Base(name))
	info, err := t.root.Lstat(target)
	if err != nil || info.IsDir() {
		return rejectEntry(header.Name, "is a hard link to %s, which is no file of the image", quoteLink(header.Linkname))
	}
	switch {
	case target == at:
		return nil
	case strings.HasPrefix(target, at+"/"):
		return rejectEntry(header.Name, "is a hard link to %s, which it would replace", quoteLink(header.Linkname))
	}
	if err := t.removeForEntry(at); err != nil {
		return err
	}
	return t.root.Link(target, at)
}

// walk is a position in the directory tree of an image. It keeps all directories on its path open. Otherwise, each
// operation on a path from the root would open all of these directories again.
type walk struct {
	root *os.Root
	open []*os.Root
	at   string // path of the last directory
}

// dir returns the current directory of the walk.
func (w *walk) dir() *os.Root {
	if len(w.open) == 0 {
		return w.root
	}
	return w.open[len(w.open)-1]
}

// enter descends from the current directory into a subdirectory.
func (w *walk) enter(name string) error {
	next, err := w.dir().OpenRoot(name)
	if err != nil {
		return err
	}
	w.open = append(w.open, next)
	w.at = path.Join(w.at, name)
	return nil
}

// leave returns to the parent of the current directory.
func (w *walk) leave() {
	_ = w.dir().Close()
	w.open = w.open[:len(w.open)-1]
	w.at = path.Dir(w.at)
}

func (w *walk) returnToRoot() {
	for len(w.open) > 0 {
		w.leave()
	}
}
