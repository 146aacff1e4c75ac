// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the way to an entry. Linux takes no longer paths, and each directory of a path costs calls of the
// kernel whenever something is done there.
const (
	maxName  = 4096 // bytes
	maxDepth = 128  // directories
	maxLinks = 40   // symbolic links, as in Linux
	// maxSteps bounds the directories that are passed with all links followed.
	maxSteps = 1024
)

func quote(s string) string { return strconv.Quote(s) }

// clean returns the path of an entry in the image. A name that begins with a slash is meant in the
// image, as container runtimes understand it: ko writes such names.
func clean(name string) (string, error) {
	if len(name) > maxName {
		return "", rejected(name, "has a name of more than "+strconv.Itoa(maxName)+" bytes")
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", rejected(name, `leads out of the image with ".."`)
	}
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if strings.ContainsRune(cleaned, 0) {
		return "", rejected(name, "has a zero byte in its name")
	}
	return cleaned, nil
}

// resolve returns the directory at dir without symbolic links, which lead to places in the image as
// they do in a container. What is missing of it is made.
func (t *Tree) resolve(dir string) (string, error) {
	if dir == t.last.name {
		return t.last.dir, nil
	}
	at, links := ".", 0
	rest := strings.Split(dir, "/")
	for steps := 0; len(rest) > 0; steps++ {
		if steps == maxSteps {
			return "", rejected(dir, "is behind symbolic links that take too many steps")
		}
		next, down, err := step(dir, at, rest[0])
		if err != nil {
			return "", err
		}
		rest = rest[1:]
		if !down {
			at = next
			continue
		}
		target, err := t.enter(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", rejected(dir, "is behind too many symbolic links")
		}
		if path.IsAbs(target) {
			at = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	t.last.name, t.last.dir = dir, at
	return at, nil
}

// step returns the path one step on from a directory, and whether it leads down to what may not be there.
func step(dir, at, part string) (next string, down bool, err error) {
	switch {
	case part == "" || part == ".":
		return at, false, nil
	case part == ".." && at == ".":
		return "", false, rejected(dir, "leads out of the image by a symbolic link")
	case part == "..":
		return path.Dir(at), false, nil
	}
	next = path.Join(at, part)
	if len(next) > maxName || strings.Count(next, "/") >= maxDepth {
		return "", false, rejected(dir, "is below more than "+strconv.Itoa(maxDepth)+" directories, or at a path of "+
			"more than "+strconv.Itoa(maxName)+" bytes")
	}
	return next, true, nil
}

// enter makes the directory at a place if it is missing. It returns the target of a symbolic link.
func (t *Tree) enter(at string) (target string, err error) {
	info, err := t.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.count(at); err != nil {
			return "", err
		}
		return "", t.mkdir(at)
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return t.root.Readlink(at)
	case !info.IsDir():
		return "", rejected(at, "is a file, and has entries below it")
	}
	return "", nil
}

// symbolicLink writes a link. Links with an absolute target lead to places in the image wherever it
// is a root.
func (t *Tree) symbolicLink(header *tar.Header, at string) error {
	target := header.Linkname
	if target == "" || len(target) >= maxName {
		return rejected(header.Name, "is a symbolic link with no target, or with one of "+
			strconv.Itoa(maxName)+" bytes or more")
	}
	if !path.IsAbs(target) {
		reached := path.Join(path.Dir(at), target) //nolint:gosec // what leads out is rejected below
		if reached == ".." || strings.HasPrefix(reached, "../") {
			return rejected(header.Name, "is a symbolic link to "+quoted(target)+", out of the image")
		}
	}
	return t.root.Symlink(target, at)
}

// hardLink writes another name of a file of the image.
func (t *Tree) hardLink(header *tar.Header, at string) error {
	name, err := clean(header.Linkname)
	if err != nil {
		return rejected(header.Name, "is a hard link to "+quoted(header.Linkname)+", out of the image")
	}
	dir, err := t.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	target := path.Join(dir, path.Base(name))
	info, err := t.root.Lstat(target)
	if err != nil || info.IsDir() {
		return rejected(header.Name, "is a hard link to "+quoted(header.Linkname)+", which is no file of the image")
	}
	switch {
	case target == at:
		return nil
	case strings.HasPrefix(target, at+"/"):
		return rejected(header.Name, "is a hard link to "+quoted(header.Linkname)+", which it would replace")
	}
	if err := t.replace(at); err != nil {
		return err
	}
	return t.root.Link(target, at)
}
