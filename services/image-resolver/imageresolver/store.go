// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"context"
	"log/slog"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

// StoreConfig configures a store of images.
type StoreConfig struct {
	// Dir is a directory that processes of the same user share.
	Dir string
	// MaxBytes bounds the disk space of all images. The store removes the least recently used images.
	MaxBytes int64
	// MaxImageBytes and MaxImageFiles bound each unpacked image.
	MaxImageBytes int64
	MaxImageFiles int64
}

// Store contains the root file systems of images, by digest.
type Store struct {
	images *imagestore.Store
	log    *slog.Logger
}

// OpenStore opens a store whose images are pulled with the credentials, authorities and mirrors of r. The members of
// group may also read the images. Zero means no group. The caller must close the store before the tasks of r stop.
func OpenStore(cfg StoreConfig, r *Resolver, group int, log *slog.Logger) (*Store, error) {
	return openStore(cfg, imagestore.Registries{Client: r.registry}, group, log)
}

func openStore(cfg StoreConfig, source imagestore.Source, group int, log *slog.Logger) (*Store, error) {
	images, err := imagestore.Open(imagestore.Config{
		Dir: cfg.Dir, Group: group, MaxBytes: cfg.MaxBytes, MaxImageBytes: cfg.MaxImageBytes,
		MaxImageFiles: cfg.MaxImageFiles, Source: source, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &Store{images: images, log: log}, nil
}

// Close cancels all pulls. Open images stay usable.
func (s *Store) Close() { s.images.Close() }

// Open returns the absolute path of the root file system of an image, and pulls the image if it is missing. The image
// stays until release is called. Open calls phase with the state of the pull, whenever it changes.
func (s *Store) Open(
	ctx context.Context, repository, digest string, phase func(string),
) (root string, release func(), err error) {
	image, err := s.images.Open(ctx, repository, digest, phase)
	if err != nil {
		return "", nil, err
	}
	return image.Root, image.Close, nil
}

// WhenFull registers a function that closes images that are open only for their next use. The store calls the
// function before it rejects an image because all images are in use.
func (s *Store) WhenFull(free func()) { s.images.WhenFull(free) }

// StoredImage is an image in a store.
type StoredImage = imagestore.Record

// ImageName is the latest resolution of an image's name.
type ImageName = imagestore.Name

// Names returns the names of the images in a store of [Local], the latest first.
func (s *Store) Names() ([]ImageName, error) { return s.images.Names() }

// List returns the images in the store, the least recently used first.
func (s *Store) List() ([]StoredImage, error) { return s.images.List() }

// Prune removes images that no process uses, the least recently used first, until the total size is at most maxBytes.
// It returns the remaining images.
func (s *Store) Prune(ctx context.Context, maxBytes int64) ([]StoredImage, error) {
	return s.images.Prune(ctx, maxBytes)
}
