// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"context"
	"log/slog"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

// StoreConfig is where the files of images are kept, and how much.
type StoreConfig struct {
	// Dir is a directory that processes of the same user share.
	Dir string
	// MaxBytes bounds what all images take on disk; the least recently used are removed.
	MaxBytes int64
	// MaxImageBytes and MaxImageFiles bound each unpacked image.
	MaxImageBytes int64
	MaxImageFiles int64
}

// Store has the root file systems of images, by digest.
type Store struct {
	images *imagestore.Store
	log    *slog.Logger
}

// OpenStore opens the store of images that are pulled as r resolves them: with the same credentials,
// authorities and mirrors. The members of group may read them too; zero is no group. The caller
// closes the store, before the tasks of r end.
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

// Close ends all pulls. Images that were opened stay usable.
func (s *Store) Close() { s.images.Close() }

// Open returns the absolute path of the root file system of an image, which is pulled if it is not
// there. It stays until release is called. The phase is called with what the pull is doing, whenever
// that changes.
func (s *Store) Open(
	ctx context.Context, repository, digest string, phase func(string),
) (root string, release func(), err error) {
	image, err := s.images.Open(ctx, repository, digest, phase)
	if err != nil {
		return "", nil, err
	}
	return image.Root, image.Close, nil
}

// WhenFull has the store call free before it rejects an image because all others are in use: free closes images that
// are open for a next use only.
func (s *Store) WhenFull(free func()) { s.images.WhenFull(free) }

// StoredImage is an image in a store.
type StoredImage = imagestore.Record

// ImageName is what an image's name meant when it was resolved last.
type ImageName = imagestore.Name

// Names returns the names of the images in a store of [Local], the latest first.
func (s *Store) Names() ([]ImageName, error) { return s.images.Names() }

// List returns the images in the store, the least recently used first.
func (s *Store) List() ([]StoredImage, error) { return s.images.List() }

// Prune removes images that no process uses, the least recently used first, until all of them take at
// most so many bytes. It returns what is left.
func (s *Store) Prune(ctx context.Context, maxBytes int64) ([]StoredImage, error) {
	return s.images.Prune(ctx, maxBytes)
}
