// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// lockSuffix is the suffix of the lock file of a temporary directory.
const lockSuffix = ".lock"

// stage is a temporary directory in the store. New files are written to it and then moved to their final paths. Images
// are moved to a stage before their removal. Thus, other processes never see an incomplete image.
type stage struct {
	store *Store
	dir   string
	lock  *os.File
}

// newStage creates a temporary directory in the store. It first locks the directory's lock file. Without this lock,
// another process would remove the directory as the leftover of a killed process.
func (s *Store) newStage() (*stage, error) {
	dir := path.Join(stagesDir, rand.Text())
	lock, err := s.tryLock(dir+lockSuffix, exclusive)
	for errors.Is(err, errBusy) { // a sweeping process has locked the file
		dir = path.Join(stagesDir, rand.Text())
		lock, err = s.tryLock(dir+lockSuffix, exclusive)
	}
	if err != nil {
		return nil, err
	}
	st := &stage{store: s, dir: dir, lock: lock}
	if err := s.root.Mkdir(dir, 0o700); err != nil {
		st.discard()
		return nil, s.explainDiskError(err)
	}
	return st, nil
}

// discard removes a temporary directory. If this fails, it keeps the lock file, so that sweepLeftovers later
// removes the directory.
func (st *stage) discard() {
	err := st.store.root.RemoveAll(st.dir)
	if err == nil {
		err = st.store.root.Remove(st.dir + lockSuffix)
	}
	if err != nil {
		st.store.cfg.Log.Warn("stage of the image store not removed", "stage", st.dir, "error", err)
	}
	_ = st.lock.Close()
}

// makeRoot creates the root directory of an image in the temporary directory, and opens it.
func (st *stage) makeRoot(name string) (*os.Root, error) {
	at := path.Join(st.dir, name)
	if err := errors.Join(st.store.root.MkdirAll(at, 0o755), st.store.root.Chmod(at, 0o755)); err != nil {
		return nil, err
	}
	return st.store.root.OpenRoot(at)
}

// newTemporary returns an open file that has no path, so that closing the file frees its disk space.
func (st *stage) newTemporary() (*os.File, error) {
	at := path.Join(st.dir, "blob")
	file, err := st.store.root.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return file, st.store.root.Remove(at)
}

// sweepLeftovers removes the temporary directories of killed processes, and the lock files of missing images.
func (s *Store) sweepLeftovers() {
	s.sweepStages()
	entries, err := fs.ReadDir(s.root.FS(), locksDir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if s.hasImage(entry.Name()) {
			continue
		}
		if lock, err := s.tryLock(path.Join(locksDir, entry.Name()), exclusive); err == nil {
			s.unlockPulled(entry.Name(), lock)
		}
	}
}

func (s *Store) sweepStages() {
	entries, err := fs.ReadDir(s.root.FS(), stagesDir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), lockSuffix)
		if !ok {
			continue
		}
		dir := path.Join(stagesDir, name)
		if lock, err := s.tryLock(dir+lockSuffix, exclusive); err == nil {
			(&stage{store: s, dir: dir, lock: lock}).discard()
		}
	}
}

// removeImage removes an image from the store. It returns errBusy if a process uses the image.
func (s *Store) removeImage(key string) error {
	lock, err := s.tryLock(path.Join(locksDir, key), exclusive)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	return s.removeLocked(key)
}

// removeLocked atomically removes an image. The caller must hold the image's lock.
func (s *Store) removeLocked(key string) error {
	st, err := s.newStage()
	if err != nil {
		return err
	}
	defer st.discard()
	err = s.root.Rename(path.Join(imagesDir, key), path.Join(st.dir, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.root.Remove(path.Join(locksDir, key))
}

// Prune removes images that are not in use, the least recently used first, until the total size is at most maxBytes. It
// returns the remaining images.
func (s *Store) Prune(ctx context.Context, maxBytes int64) ([]Record, error) {
	lock, err := s.lock(ctx, pruneLock, exclusive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	s.sweepLeftovers()
	images, err := s.List()
	if err != nil {
		return nil, err
	}
	total := bytesOf(images)
	left := images[:0]
	for _, image := range images {
		if total <= maxBytes || s.removeImage(strings.TrimPrefix(image.Digest, "sha256:")) != nil {
			left = append(left, image)
			continue
		}
		total -= image.Bytes
		s.cfg.Log.Info("image removed from the store", "repository", image.Repository, "digest", image.Digest)
	}
	return left, s.pruneNames()
}
