// SPDX-License-Identifier: Apache-2.0

// Package unused removes entries from a cache that were not used for some time. Otherwise, caches would grow forever,
// because each new version of an entry has a new name.
package unused

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Limit is the time after which an unused entry may be removed.
const Limit = 7 * 24 * time.Hour

// Touch marks a cache entry as used now, by setting its modification time.
func Touch(path string) error {
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("mark %s as used: %w", path, err)
	}
	return nil
}

// Remove removes subdirectories of dir that were not used for a week, and their lock files. It keeps subdirectories for
// which the argument keep returns true. No process may use the cache during the call.
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
		_ = os.Remove(path + ".lock") // most entries have no lock file
	}
	return failed
}
