// Package unused removes from a cache what nobody has used for a while: each new version
// is kept under a new name, and nobody asks for the old ones any more.
package unused

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Limit is for how long a thing is kept that nobody uses.
const Limit = 7 * 24 * time.Hour

// Touch says that a folder of a cache is used now.
func Touch(path string) error {
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("noting that %s is used: %w", path, err)
	}
	return nil
}

// Remove removes the folders in one that nobody has touched for the limit, each with its
// lock, unless they are to be kept. Nobody may use the cache meanwhile.
func Remove(dir string, keep func(path string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for what is unused: %w", err)
	}
	var failed error
	for _, entry := range entries {
		info, err := entry.Info()
		path := filepath.Join(dir, entry.Name())
		if err != nil || !entry.IsDir() || time.Since(info.ModTime()) < Limit || keep(path) {
			continue
		}
		failed = errors.Join(failed, os.RemoveAll(path))
		_ = os.Remove(path + ".lock") // Few have one.
	}
	return failed
}
