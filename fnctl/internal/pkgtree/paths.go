// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// MayWrite reports whether a function may write a file with this path. The path must be inside the package. It must
// also be outside of Git's directory, because Git runs programs that its hooks and configuration name. On all systems,
// a backslash also separates elements of the path, as on Windows.
func MayWrite(file string) bool {
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return false
	}
	for element := range strings.SplitSeq(strings.ReplaceAll(file, `\`, "/"), "/") {
		if isGit(element) {
			return false
		}
	}
	return true
}

// isGit reports whether any file system may treat a name as .git. macOS ignores case and hidden characters. Windows
// ignores dots and spaces at the end, and a colon with a stream's name. It also accepts the short name git~1.
func isGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		if excerpt.IsHidden(r) {
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// isRepository reports whether a directory is a bare Git repository or a worktree's Git directory. The directory may
// have any name. Like Git, isRepository checks for files such as HEAD, which may be links. Their names may have any
// spelling that the file system permits, such as head.
func isRepository(root *os.Root, dir string) bool {
	contains := func(name string, isDir bool) bool {
		info, err := root.Lstat(path.Join(dir, name))
		return err == nil && (info.IsDir() == isDir || info.Mode()&fs.ModeSymlink != 0)
	}
	return contains("HEAD", false) &&
		((contains("objects", true) && contains("refs", true)) || contains("commondir", false))
}

// isOfGit reports whether a file is in a Git directory of any name. The file's path must not contain links.
func isOfGit(root *os.Root, file string) bool {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if isRepository(root, dir) {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// mayWriteTo is like [MayWrite], but also rejects files in Git directories of any name. The path must contain no link.
func mayWriteTo(root *os.Root, file string) bool { return MayWrite(file) && !isOfGit(root, file) }

// HiddenPath returns file if this file below dir is hidden, and "" otherwise. A file is hidden if a name in its path
// begins with a dot. If only the path with resolved links is hidden, the result is the resolved path. Hidden files are
// a risk: shells and file managers do not show them, but other programs may read them as configuration or run them.
func HiddenPath(dir, file string) string {
	target, _ := resolveLinks(dir, file) // empty if dir does not exist yet
	for _, name := range []string{file, target} {
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			return name
		}
	}
	return ""
}

// resolveLinks resolves all symbolic links in the path of a file below dir. It returns the resolved path, relative to
// dir. The file and its parent directories need not exist, but a link to a missing file is an error.
func resolveLinks(dir, file string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Join(root, filepath.FromSlash(file))
	target, err := filepath.EvalSymlinks(name)
	if _, missing := os.Lstat(name); errors.Is(missing, fs.ErrNotExist) && file != "." {
		parent, err := resolveLinks(dir, path.Dir(file))
		return path.Join(parent, path.Base(file)), err
	}
	if err != nil {
		return "", err
	}
	target, err = filepath.Rel(root, target)
	return filepath.ToSlash(target), err
}
