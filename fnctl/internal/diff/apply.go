// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Apply applies a patch from `git diff` or [Unified] to files, and returns the contents of all files by path. It fails
// if a line to remove, or a line of the context, differs.
func Apply(files map[string][]byte, patch string) (map[string][]byte, error) {
	changes, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, err
	}
	patched, written := maps.Clone(files), map[string][]byte{}
	for _, change := range changes {
		before, after := pathsOf(change)
		var content bytes.Buffer
		err := gitdiff.Apply(&content, bytes.NewReader(files[before]), change)
		if failed, ok := errors.AsType[*gitdiff.ApplyError](err); ok {
			return nil, fmt.Errorf("the patch does not fit %s: line %d differs", before, failed.Line)
		} else if err != nil {
			return nil, fmt.Errorf("the patch does not fit %s: %w", before, err)
		}
		delete(patched, before)
		if !change.IsDelete {
			written[after] = content.Bytes()
		}
	}
	maps.Copy(patched, written)
	return patched, nil
}

// pathsOf returns a file's paths before and after a change. It omits the prefixes a/ and b/ of paths in Git's patches.
// For a patch with object ids or a rename, as from `git diff`, the parser has already removed the prefixes.
func pathsOf(change *gitdiff.File) (before, after string) {
	if change.NewOIDPrefix != "" || change.IsRename {
		return change.OldName, change.NewName
	}
	trim := func(path string) string {
		if trimmed, ok := strings.CutPrefix(path, "a/"); ok {
			return trimmed
		}
		return strings.TrimPrefix(path, "b/")
	}
	return trim(change.OldName), trim(change.NewName)
}
