// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"path/filepath"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// MayWrite reports whether a function may write a file of this path: inside of the package, and not into Git's own
// directory, whose hooks and configuration are programs that Git starts.
func MayWrite(file string) bool {
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return false
	}
	for element := range strings.SplitSeq(file, "/") {
		if isGit(element) {
			return false
		}
	}
	return true
}

// isGit reports whether a file system may take a name for .git: without regard to case or to characters that it
// ignores (macOS), to dots and spaces at the end or streams (Windows), or by its short name.
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

// IsHiddenFile reports whether the name of a file, or of a directory that it is in, begins with a dot: shells and file
// managers do not show it, and other programs may read it as configuration or run it.
func IsHiddenFile(file string) bool {
	for element := range strings.SplitSeq(file, "/") {
		if strings.HasPrefix(element, ".") {
			return true
		}
	}
	return false
}
