// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/unused"
)

// Store is a cache of built components, in the directory Dir.
type Store struct {
	Dir string
	// Log receives the name and build time of each component that is built.
	Log io.Writer
}

// Get returns the directory with the component's programs, and builds them if the cache does not contain them. A
// lock file prevents two processes from building the same component.
func (s Store) Get(ctx context.Context, c Component) (string, error) {
	dir := filepath.Join(s.Dir, c.Key())
	if exists(dir) {
		return dir, unused.Touch(dir)
	}
	unlock, err := filelock.Acquire(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) {
		return dir, unused.Touch(dir)
	}
	return dir, s.buildComponent(ctx, c, dir)
}

// buildComponent builds the component in a temporary directory and renames it, so that dir is always complete.
func (s Store) buildComponent(ctx context.Context, c Component, dir string) error {
	start := time.Now()
	fmt.Fprintf(s.Log, "building %s %s\n", c.Name, c.Version)
	temp, err := os.MkdirTemp(s.Dir, c.Name+"-building-")
	if err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	defer os.RemoveAll(temp)
	if err := c.Build(ctx, temp); err != nil {
		return fmt.Errorf("build %s %s: %w", c.Name, c.Version, err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("keep %s: %w", c.Name, err)
	}
	fmt.Fprintf(s.Log, "built %s in %s\n", c.Name, time.Since(start).Round(time.Second))
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
