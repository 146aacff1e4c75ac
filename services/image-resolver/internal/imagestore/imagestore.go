// SPDX-License-Identifier: Apache-2.0

// Package imagestore stores the root file systems of images on disk, by the digest of the image. Several processes
// may share a store. Only one of them pulls each image, and none removes an image that another process uses.
//
// A store's directory contains:
//
//	images/HEX/rootfs       the complete files of an image
//	images/HEX/image.json   the image's repository and size
//	locks/HEX               lock of an image: shared for its users, exclusive for a pull or removal;
//	                        the modification time of the file is the time of the image's last use
//	names/HASH.json         an image name with the digest to which it was last resolved
//	stages/NAME             temporary directory of an image that is being pulled or removed
//	stages/NAME.lock        lock file of the temporary directory, locked while a process uses the directory
//
// The locks are flock(2) locks. The kernel releases them when a process exits. The temporary directories of a killed
// process are therefore unlocked. The next process that opens the store removes them.
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

// Directories in the directory of a store.
const (
	imagesDir = "images"
	locksDir  = "locks"
	stagesDir = "stages"
	namesDir  = "names"
)

// pruneLock is the lock file for removing images and names, adding names, and checking which images are in use.
const pruneLock = "prune.lock"

// Source is the origin of the images that a store pulls, for example an image registry.
type Source interface {
	// Image returns the manifest of an image, and the part of its configuration that is needed to unpack it.
	// Implementations must verify the digests of the manifest and the configuration.
	Image(ctx context.Context, repository, digest string) (*oci.Manifest, oci.RootFS, error)
	// Layer passes the content of a layer to the callback read. If the callback fails, Layer may call it again with the
	// content from another registry, such as a mirror. Each call receives the content from the beginning.
	Layer(ctx context.Context, repository, digest string, read ReadLayer) error
}

// ReadLayer reads the content of a layer. It may call the function stop with an error to abort a hanging download.
type ReadLayer func(content io.Reader, stop func(error)) error

// Config configures a Store.
type Config struct {
	// Dir is the store's directory. It is created if it is missing.
	Dir string
	// Group is the ID of a Unix group that may read images, in addition to this process's user. Zero means no group.
	Group int
	// MaxBytes bounds the disk space of all images together. MaxImageBytes and MaxImageFiles bound each image.
	MaxBytes, MaxImageBytes, MaxImageFiles int64

	Source Source
	Log    *slog.Logger
}

// Store contains the root file systems of images in a directory on disk.
type Store struct {
	cfg     Config
	root    *os.Root
	flights flights
	pulls   *pullSlots
	// whenFull is the function from [Store.WhenFull] that frees space in the store. It is nil if none was registered.
	whenFull atomic.Pointer[func()]
}

// WhenFull registers a function that the store calls before it rejects a new image for lack of space. The function must
// release images that the caller keeps open only for later use.
func (s *Store) WhenFull(free func()) { s.whenFull.Store(&free) }

// Open opens a store. It also removes temporary files that killed processes have left in the store.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, pulls: newPullSlots()}
	if err := s.openDirectory(); err != nil {
		return nil, fmt.Errorf("open the image store %s: %w: set FNR_SANDBOX_STORE to a directory of its own", cfg.Dir, err)
	}
	s.sweepLeftovers()
	return s, nil
}

func (s *Store) openDirectory() (err error) {
	// Other users must be able to enter the parent directories, because functions do not run as this process's user.
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

// admitGroup gives the configured Unix group read access to the directory of images.
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

// checkReachable returns an error if sandboxes, which do not run as root, cannot enter a parent directory of dir.
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

// Close cancels all pulls. Images that callers have opened stay usable.
func (s *Store) Close() {
	s.flights.close()
	_ = s.root.Close()
}

// Open returns the absolute path of an image's root file system, and pulls the image first if necessary. Callers must
// call release when they no longer use the image. Concurrent callers share a pull, which is cancelled at most five
// minutes after the last caller leaves. Open calls phase with texts such as "pulling 2 of 7 layers, 12 of 80 MiB".
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

// lockImage returns the path of an image's root file system. The image stays in the store until release is called. The
// path is empty if the store does not contain the image.
func (s *Store) lockImage(ctx context.Context, key string) (root string, release func(), err error) {
	if !s.hasImage(key) {
		return "", nil, nil
	}
	lock, err := s.lock(ctx, path.Join(locksDir, key), shared)
	if err != nil {
		return "", nil, err
	}
	root, err = filepath.Abs(filepath.Join(s.cfg.Dir, imagesDir, key, rootfs))
	if err != nil || !s.hasImage(key) { // another process has removed the image
		_ = lock.Close()
		return "", nil, err
	}
	s.touchImage(key)
	return root, func() {
		s.touchImage(key)
		_ = lock.Close()
	}, nil
}

// hasImage reports whether the store contains an image. Images in the store are always complete.
func (s *Store) hasImage(key string) bool {
	_, err := s.root.Lstat(path.Join(imagesDir, key))
	return err == nil
}

// touchImage records that an image is used now, because the least recently used images are removed first.
func (s *Store) touchImage(key string) {
	now := time.Now()
	_ = s.root.Chtimes(path.Join(locksDir, key), now, now) // best effort: only the order of removal depends on it
}
