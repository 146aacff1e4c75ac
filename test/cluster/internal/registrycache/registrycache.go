// SPDX-License-Identifier: Apache-2.0

// Package registrycache caches the files of a registry, so that new registries start with the same images. Pushing
// hundreds of blobs to each new registry would take much longer.
package registrycache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
)

// Cache stores a copy of a registry's directory as a subdirectory of Dir. The subdirectory's name is the cache key.
type Cache struct{ Dir string }

// Key returns the cache key of a registry's content after a push of images. The argument images maps names of images to
// digests. The argument before is the cache key before the push, or an empty string for an empty registry.
func Key(before string, images map[string]string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", before, images) // prints maps sorted by key
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

// Fill copies the cached content with the given key to a registry's directory. It returns false if the cache does
// not contain this key. No uploads to the registry may be in progress.
func (c Cache) Fill(key, registry string) (bool, error) {
	unlock, err := filelock.Share(c.lockFile())
	if err != nil {
		return false, err
	}
	defer unlock()
	err = copyTree(filepath.Join(c.Dir, key), registry)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fill a registry from %s: %w", c.Dir, err)
	}
	return true, nil
}

// Keep copies a registry's directory to the cache, and replaces the cache's earlier content. No uploads to the
// registry may be in progress.
func (c Cache) Keep(key, registry string) error {
	unlock, err := filelock.Acquire(c.lockFile())
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.storeContent(key, registry); err != nil {
		return fmt.Errorf("keep the files of a registry: %w", err)
	}
	return nil
}

// storeContent copies the directory to a temporary name and renames it, so that Fill never finds a partial copy.
func (c Cache) storeContent(key, registry string) error {
	if err := os.RemoveAll(c.Dir); err != nil {
		return err
	}
	temp := filepath.Join(c.Dir, "new")
	if err := copyTree(registry, temp); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(c.Dir, key))
}

func (c Cache) lockFile() string { return c.Dir + ".lock" }
