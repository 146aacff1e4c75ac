// SPDX-License-Identifier: Apache-2.0

// Package unused removes unused entries from a cache: each new version is stored under a new name, and old versions
// are no longer used.
package unused

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Limit is the time for which an unused entry is kept.
const Limit = 7 * 24 * time.Hour

// Touch marks a directory of a cache as used now.
func Touch(path string) error {
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("mark %s as used: %w", path, err)
	}
	return nil
}

// Remove removes the subdirectories that were not touched for the limit, each with its lock, except
// for those to keep. The cache must not be in use.
func Remove(dir string, keep func(path string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for unused entries: %w", err)
	}
	var failed error
	for _, entry := range entries {
		info, err := entry.Info()
		path := filepath.Join(dir, entry.Name())
		if err != nil || !entry.IsDir() || time.Since(info.ModTime()) < Limit || keep(path) {
			continue
		}
		failed = errors.Join(failed, os.RemoveAll(path))
		_ = os.Remove(path + ".lock") // most caches lack it.
	}
	return failed
}
