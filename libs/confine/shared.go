// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"os"
	"path/filepath"
)

// sharedDirs contains the directories of [Config.Shared] and the entries that they had before functions ran.
type sharedDirs struct {
	paths []string
	// kept contains the entries that existed before the first function started. EmptyShared keeps them.
	kept map[string]bool
}

func newSharedDirs(paths []string) sharedDirs {
	s := sharedDirs{paths: paths, kept: map[string]bool{}}
	for _, entry := range s.entries() {
		s.kept[entry] = true
	}
	return s
}

// entries returns the paths of all entries in the shared directories.
func (s sharedDirs) entries() (entries []string) {
	for _, dir := range s.paths {
		found, _ := os.ReadDir(dir) // a missing directory is of no use to a function either
		for _, entry := range found {
			entries = append(entries, filepath.Join(dir, entry.Name()))
		}
	}
	return entries
}

// EmptyShared removes the files that functions wrote to the directories of [Config.Shared]. No function may be
// using these directories.
func (c *Confiner) EmptyShared() {
	if c == nil {
		return
	}
	for _, entry := range c.shared.entries() {
		if !c.shared.kept[entry] {
			_ = removeAll(entry) // remaining files count towards the limits of the next function
		}
	}
}
