// SPDX-License-Identifier: Apache-2.0

// Package imagecache caches images of this repository's programs, so that new clusters need not build them.
package imagecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
)

// Cache stores the last image of each repository in the directory Dir.
type Cache struct{ Dir string }

// Lock locks the cached image of a repository. Callers must hold the lock when they call Get or Keep.
func (c Cache) Lock(repository string) (unlock func(), err error) {
	return filelock.Acquire(c.dir(repository) + ".lock")
}

// Get returns the cached image of a repository. It returns nil if the cache contains no image with this key. The image
// reads its layers from the cache later, when they are needed.
func (c Cache) Get(repository, key string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(filepath.Join(c.dir(repository), key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a cached image: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read a cached image: %w", err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, want one: remove it", c.dir(repository), len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// Keep stores an image with its key, and replaces the repository's earlier image.
func (c Cache) Keep(repository, key string, image v1.Image) error {
	if err := c.storeImage(c.dir(repository), key, image); err != nil {
		return fmt.Errorf("keep the image %s: %w", repository, err)
	}
	return nil
}

// storeImage writes an image to a temporary directory and renames it, so that Get never finds a partial image.
func (c Cache) storeImage(dir, key string, image v1.Image) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, "new")
	path, err := layout.Write(temp, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendImage(image); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, key))
}

func (c Cache) dir(repository string) string {
	return filepath.Join(c.Dir, filepath.FromSlash(repository))
}
