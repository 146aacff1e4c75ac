// SPDX-License-Identifier: Apache-2.0

// Package bundle is the images of a release in one directory, with all that is known about them: signatures,
// provenance and SBOMs. It is an OCI layout, in which each has the name that it will have in a registry.
package bundle

import (
	"errors"
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// nameAnnotation has the name of an image or index: program:tag.
const nameAnnotation = "org.opencontainers.image.ref.name"

// Bundle is a bundle in a directory.
type Bundle struct{ path layout.Path }

// Create makes an empty bundle.
func Create(dir string) (Bundle, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return Bundle{}, fmt.Errorf("create a bundle of images: %w", err)
	}
	return Bundle{path}, nil
}

// Open returns the bundle in a directory.
func Open(dir string) (Bundle, error) {
	path, err := layout.FromPath(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Bundle{}, fmt.Errorf("%s has no images: name the directory in images_VERSION.tar: %w", dir, err)
	}
	if err != nil {
		return Bundle{}, fmt.Errorf("open the images in %s: %w", dir, err)
	}
	return Bundle{path}, nil
}

// AddImage adds an image.
func (b Bundle) AddImage(name string, image v1.Image) error {
	return b.path.AppendImage(image, layout.WithAnnotations(map[string]string{nameAnnotation: name}))
}

// AddIndex adds an image for several platforms.
func (b Bundle) AddIndex(name string, index v1.ImageIndex) error {
	return b.path.AppendIndex(index, layout.WithAnnotations(map[string]string{nameAnnotation: name}))
}

// entry is an image or index of the bundle.
type entry struct {
	name       string
	descriptor v1.Descriptor
}

// entries returns what the bundle contains, in its order, and its index.
func (b Bundle) entries() ([]entry, v1.ImageIndex, error) {
	index, err := b.path.ImageIndex()
	if err != nil {
		return nil, nil, fmt.Errorf("read the bundle: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, fmt.Errorf("read the bundle: %w", err)
	}
	var found []entry
	for _, descriptor := range manifest.Manifests {
		name := descriptor.Annotations[nameAnnotation]
		if name == "" {
			return nil, nil, fmt.Errorf("read the bundle: %s has no name", descriptor.Digest)
		}
		found = append(found, entry{name, descriptor})
	}
	return found, index, nil
}
