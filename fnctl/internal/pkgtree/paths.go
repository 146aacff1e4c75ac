// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"path/filepath"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// MayWrite reports whether a function may write a file with this path. The path must be inside the package, and
// outside of Git's directory, because Git runs programs from its hooks and configuration.
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

// isGit reports whether some file system may treat a name as .git. macOS ignores case and hidden characters.
// Windows ignores dots and spaces at the end, and accepts a stream's name after a colon and the short name git~1.
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

// IsHiddenFile reports whether a file, or a directory above it, has a name that begins with a dot. Shells and file
// managers do not show such files, and other programs may read them as configuration or run them.
func IsHiddenFile(file string) bool {
	for element := range strings.SplitSeq(file, "/") {
		if strings.HasPrefix(element, ".") {
			return true
		}
	}
	return false
}
