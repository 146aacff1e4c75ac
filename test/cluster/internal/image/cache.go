package image

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

// Cache keeps the last image of each repository in a folder, so that another cluster's
// registry gets it without a build.
type Cache struct{ Dir string }

// Lock makes its holder the only one that uses what is kept of a repository, until
// unlock is called.
func (c Cache) Lock(repository string) (unlock func(), err error) {
	return filelock.Acquire(c.folder(repository) + ".lock")
}

// Get returns the image that was kept of a repository under a key, nil if it is none or
// another one. It reads its files when they are needed.
func (c Cache) Get(repository, key string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(filepath.Join(c.folder(repository), key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a kept image: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading a kept image: %w", err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, want one: remove it", c.folder(repository), len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// Keep keeps the image of a repository in place of the one before.
func (c Cache) Keep(repository, key string, image v1.Image) error {
	if err := c.keep(c.folder(repository), key, image); err != nil {
		return fmt.Errorf("keeping the image %s: %w", repository, err)
	}
	return nil
}

// keep has the folder appear whole.
func (c Cache) keep(folder, key string, image v1.Image) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	temp := filepath.Join(folder, "new")
	path, err := layout.Write(temp, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendImage(image); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(folder, key))
}

func (c Cache) folder(repository string) string {
	return filepath.Join(c.Dir, filepath.FromSlash(repository))
}
