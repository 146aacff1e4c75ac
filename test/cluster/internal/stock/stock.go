// Package stock keeps what a registry stored of images, so that the registries of the next
// cluster have them as they start: pushing the same hundreds of blobs each time is most of
// what a registry has to do.
package stock

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

// Stock keeps the last copy of a registry's folder, with what the registry had been given.
type Stock struct{ Dir string }

// Key names what a registry has that has first been given what before names, nothing if
// that is empty, and then images of these names and digests.
func Key(before string, images map[string]string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", before, images) // maps are printed in order
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

// Fill gives a registry that nobody pushes to yet what is kept under a key, and says
// whether there is something.
func (s Stock) Fill(key, registry string) (bool, error) {
	unlock, err := filelock.Share(s.lock())
	if err != nil {
		return false, err
	}
	defer unlock()
	err = copyTree(filepath.Join(s.Dir, key), registry)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("filling a registry from %s: %w", s.Dir, err)
	}
	return true, nil
}

// Keep keeps under a key what a registry has that nobody is pushing to, in place of what
// was kept before.
func (s Stock) Keep(key, registry string) error {
	unlock, err := filelock.Acquire(s.lock())
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.keep(key, registry); err != nil {
		return fmt.Errorf("keeping the files of a registry: %w", err)
	}
	return nil
}

// keep has the copy appear whole.
func (s Stock) keep(key, registry string) error {
	if err := os.RemoveAll(s.Dir); err != nil {
		return err
	}
	temp := filepath.Join(s.Dir, "new")
	if err := copyTree(registry, temp); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.Dir, key))
}

func (s Stock) lock() string { return s.Dir + ".lock" }
