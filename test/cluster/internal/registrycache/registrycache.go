// SPDX-License-Identifier: Apache-2.0

// Package registrycache keeps a copy of a registry's stored images, with which the registries
// of the next cluster start: pushing the same hundreds of blobs each time would be most of a registry's work.
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

// Cache keeps the last copy of a registry's directory, with the key of its content.
type Cache struct{ Dir string }

// Key identifies the content of a registry to which the content of before, nothing if that is
// empty, and then images of these names and digests were pushed.
func Key(before string, images map[string]string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", before, images) // maps are printed in order
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

// Fill copies the content cached under a key to a registry without uploads, and reports whether the cache had any.
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

// Keep stores the content of a registry without uploads in progress under a key, and replaces earlier content.
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

// storeContent creates the copy as a whole.
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
