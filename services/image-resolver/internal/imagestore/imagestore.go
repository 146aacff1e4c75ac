// SPDX-License-Identifier: Apache-2.0

// Package imagestore stores the root file systems of images on disk, by digest. Several processes may share a store.
// A single process pulls each image, all processes use it, and no process removes it while another process uses it.
//
// A store's directory contains:
//
//	images/HEX/rootfs       the complete files of an image
//	images/HEX/image.json   the image's repository and size
//	locks/HEX               locked by each process that uses the image (shared), pulls or
//	                        removes it (exclusive); its time is the time of the last use
//	names/HASH.json         the latest resolution of an image's name
//	stages/NAME             a running pull, or an image that is being removed
//	stages/NAME.lock        locked while a process uses the stage
//
// The locks are flock(2) locks, which the kernel releases when a process exits. The next process therefore finds the
// leftovers of a killed process unlocked, and removes them.
package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// The directories of a store.
const (
	imagesDir = "images"
	locksDir  = "locks"
	stagesDir = "stages"
	namesDir  = "names"
)

// Source provides the content of images.
type Source interface {
	// Image returns the manifest of an image and the part of its configuration about files. Sources must verify the
	// digests of the manifest and the configuration.
	Image(ctx context.Context, repository, digest string) (*oci.Manifest, oci.RootFS, error)
	// Layer calls read with the content of a layer. If read fails and another registry has the layer, Layer calls
	// read again with the content from its beginning.
	Layer(ctx context.Context, repository, digest string, read ReadLayer) error
}

// ReadLayer reads a layer. It may call stop to abort a hanging read with an error.
type ReadLayer func(content io.Reader, stop func(error)) error

// Config configures a Store.
type Config struct {
	// Dir is the store's directory. It is made if it is missing.
	Dir string
	// Group is a group that may read images, in addition to the user of this process. Zero means no group.
	Group int
	// MaxBytes bounds the disk space of all images, MaxImageBytes and MaxImageFiles the size of each image.
	MaxBytes, MaxImageBytes, MaxImageFiles int64

	Source Source
	Log    *slog.Logger
}

// Store is a store of images.
type Store struct {
	cfg     Config
	root    *os.Root
	flights flights
	pulls   *pullSlots
	// whenFull closes images that are open but not in use, to make space. It may be nil.
	whenFull atomic.Pointer[func()]
}

// WhenFull registers a function that closes images that are open only for their next use. The store calls the
// function before it rejects an image because all images are in use.
func (s *Store) WhenFull(free func()) { s.whenFull.Store(&free) }

// Open opens a store, and removes the leftovers of killed processes.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, pulls: newPullSlots()}
	if err := s.openDirectory(); err != nil {
		return nil, fmt.Errorf("open the image store %s: %w: set FNR_SANDBOX_STORE to a directory of its own", cfg.Dir, err)
	}
	s.sweepLeftovers()
	return s, nil
}

func (s *Store) openDirectory() (err error) {
	// Other users must be able to enter the directories above the store's own.
	if err := os.MkdirAll(filepath.Dir(s.cfg.Dir), 0o755); err != nil { //nolint:gosec // they hold nothing else
		return err
	}
	if err := os.Mkdir(s.cfg.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.root, err = os.OpenRoot(s.cfg.Dir); err != nil {
		return err
	}
	for _, dir := range []string{imagesDir, locksDir, stagesDir, namesDir} {
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if s.cfg.Group == 0 {
		return nil
	}
	return s.admitGroup()
}

// admitGroup gives the store's group access to the directory of images.
func (s *Store) admitGroup() error {
	if err := checkReachable(s.cfg.Dir); err != nil {
		return err
	}
	for _, dir := range []string{".", imagesDir} {
		if err := errors.Join(s.root.Chown(dir, -1, s.cfg.Group), s.root.Chmod(dir, 0o750)); err != nil {
			return err
		}
	}
	return nil
}

// checkReachable checks that every user can enter the directories above dir.
func checkReachable(dir string) error {
	dir, err := filepath.Abs(dir)
	for err == nil && dir != "/" {
		dir = filepath.Dir(dir)
		info, statErr := os.Stat(dir)
		if statErr == nil && info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("sandboxes cannot enter %s, because they do not run as root", dir)
		}
		err = statErr
	}
	return err
}

// Close cancels all pulls. Open images stay usable.
func (s *Store) Close() {
	s.flights.close()
	_ = s.root.Close()
}

// Open returns the absolute path of the root file system of an image, and pulls the image if it is not in the store.
// The image stays in the store until release is called. All callers share a pull, which is cancelled some minutes after
// the last caller has given up. Open calls phase with the state of the pull, such as "pulling 2 of 7 layers, 12 of 80
// MiB", whenever the state changes.
func (s *Store) Open(
	ctx context.Context, repository, digest string, phase func(string),
) (root string, release func(), err error) {
	key, err := keyOf(digest)
	if err != nil {
		return "", nil, err
	}
	const attempts = 3 // another process may remove the image before it is locked
	for range attempts {
		if root, release, err = s.lockImage(ctx, key); root != "" || err != nil {
			return root, release, err
		}
		if err := s.flights.join(ctx, key, phase, func(ctx context.Context, p *flight) error {
			return s.fetchImage(ctx, repository, digest, key, p)
		}); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fault.New(fault.Exhausted, "image %s@%s: the store %s evicts it at once: "+
		"all images may take %d MiB", repository, digest, s.cfg.Dir, s.cfg.MaxBytes>>20)
}

func keyOf(digest string) (string, error) {
	key, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(key) != 64 || strings.Trim(key, "0123456789abcdef") != "" {
		return "", fault.New(fault.Precondition, "the digest %q is not supported: only sha256 is", digest)
	}
	return key, nil
}

// lockImage returns the root of an image in the store, which stays until release is called. The root is empty if the
// image is missing.
func (s *Store) lockImage(ctx context.Context, key string) (root string, release func(), err error) {
	if !s.hasImage(key) {
		return "", nil, nil
	}
	lock, err := s.lock(ctx, path.Join(locksDir, key), shared)
	if err != nil {
		return "", nil, err
	}
	root, err = filepath.Abs(filepath.Join(s.cfg.Dir, imagesDir, key, rootfs))
	if err != nil || !s.hasImage(key) { // another process has removed it
		_ = lock.Close()
		return "", nil, err
	}
	s.touchImage(key)
	return root, func() {
		s.touchImage(key)
		_ = lock.Close()
	}, nil
}

// hasImage reports whether an image is in the store. An image in the store is always complete.
func (s *Store) hasImage(key string) bool {
	_, err := s.root.Lstat(path.Join(imagesDir, key))
	return err == nil
}

// touchImage records that an image is in use now.
func (s *Store) touchImage(key string) {
	now := time.Now()
	_ = s.root.Chtimes(path.Join(locksDir, key), now, now) // best effort: only the order of removal depends on it
}
