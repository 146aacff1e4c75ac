// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// List returns the images in the store, the least recently used first.
func (s *Store) List() ([]Record, error) {
	entries, err := fs.ReadDir(s.root.FS(), imagesDir)
	if err != nil {
		return nil, err
	}
	var images []Record
	for _, entry := range entries {
		image, err := s.readRecord(entry.Name())
		if err == nil { // another process may have removed the image
			images = append(images, image)
		}
	}
	slices.SortFunc(images, func(a, b Record) int { return a.Used.Compare(b.Used) })
	return images, nil
}

func (s *Store) readRecord(key string) (image Record, err error) {
	content, err := s.root.ReadFile(path.Join(imagesDir, key, record))
	if err != nil {
		return image, err
	}
	if err := json.Unmarshal(content, &image); err != nil {
		return image, err
	}
	if info, err := s.root.Lstat(path.Join(locksDir, key)); err == nil {
		image.Used = info.ModTime()
	}
	return image, nil
}

// makeFit removes unused images after a pull, until the total size of all images is at most MaxBytes. If all other
// images are in use, it removes the new image and returns an error. The caller must hold the lock of the new image.
func (s *Store) makeFit(ctx context.Context, repository, digest, key string) error {
	fits := func() (bool, error) {
		left, err := s.Prune(ctx, s.cfg.MaxBytes)
		return bytesOf(left) <= s.cfg.MaxBytes, err
	}
	ok, err := s.tryAfterFreeing(fits)
	if ok || err != nil {
		return err
	}
	if err := s.removeLocked(key); err != nil {
		return err
	}
	return s.allInUse(repository, digest)
}

// mayFit returns an error if images in use leave too little space for a new image of at least the given size. Pulls
// call it before a download, to avoid useless downloads.
func (s *Store) mayFit(ctx context.Context, repository, digest string, bytes int64) error {
	fits := func() (bool, error) {
		lock, err := s.lock(ctx, pruneLock, exclusive)
		if err != nil {
			return false, err
		}
		defer func() { _ = lock.Close() }()
		images, err := s.List()
		used := slices.DeleteFunc(images, func(image Record) bool {
			return !s.inUse(strings.TrimPrefix(image.Digest, "sha256:"))
		})
		return bytesOf(used)+bytes <= s.cfg.MaxBytes, err
	}
	ok, err := s.tryAfterFreeing(fits)
	if ok || err != nil {
		return err
	}
	return s.allInUse(repository, digest)
}

// tryAfterFreeing calls the callback fits, which reports whether there is enough space. If not, it calls the function
// from [Store.WhenFull], which releases images that are only kept for later use. It then calls fits again.
func (s *Store) tryAfterFreeing(fits func() (bool, error)) (bool, error) {
	ok, err := fits()
	free := s.whenFull.Load()
	if ok || err != nil || free == nil {
		return ok, err
	}
	(*free)()
	return fits()
}

// inUse reports whether any process uses or pulls an image now. To find out, it locks the image for a moment. The
// caller must hold pruneLock. Otherwise, a concurrent Prune would find the image locked, and would keep it.
func (s *Store) inUse(key string) bool {
	lock, err := s.tryLock(path.Join(locksDir, key), exclusive)
	if err == nil {
		_ = lock.Close()
	}
	return err != nil
}

// allInUse returns the error for a new image that does not fit into the store because all other images are in use.
func (s *Store) allInUse(repository, digest string) error {
	return fault.New(fault.Exhausted, "image %s@%s: the image store %s may take %d MiB, "+
		"and all other images in it are in use: try again later",
		repository, digest, s.cfg.Dir, s.cfg.MaxBytes>>20)
}

func bytesOf(images []Record) (total int64) {
	for _, image := range images {
		total += image.Bytes
	}
	return total
}

// describeSize formats the number n of downloaded bytes for an error message. If n exceeds the expected size, the text
// is "more than" the expected size, because the download stopped at the first excess byte.
func describeSize(n, expected int64) string {
	if n > expected {
		return "more than " + strconv.FormatInt(expected, 10)
	}
	return strconv.FormatInt(n, 10)
}
