// SPDX-License-Identifier: Apache-2.0

// Package imagecache keeps built images between clusters.
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

// Cache keeps the last image of each repository in a directory, so that another cluster's registry
// gets it without a build.
type Cache struct{ Dir string }

// Lock gives its holder exclusive use of the cached image of a repository, until unlock is called.
func (c Cache) Lock(repository string) (unlock func(), err error) {
	return filelock.Acquire(c.dir(repository) + ".lock")
}

// Get returns the image cached for a repository under a key. It is nil if no image is cached or its key differs. The
// image's files are read when they are needed.
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

// Keep replaces the cached image of a repository.
func (c Cache) Keep(repository, key string, image v1.Image) error {
	if err := c.storeImage(c.dir(repository), key, image); err != nil {
		return fmt.Errorf("keep the image %s: %w", repository, err)
	}
	return nil
}

// storeImage creates the directory as a whole.
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
