// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strconv"

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
		image, err := s.record(entry.Name())
		if err == nil { // otherwise it was removed meanwhile
			images = append(images, image)
		}
	}
	slices.SortFunc(images, func(a, b Record) int { return a.Used.Compare(b.Used) })
	return images, nil
}

// record reads what is known about an image.
func (s *Store) record(key string) (image Record, err error) {
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

// makeFit removes images after a pull until all fit. The new one, which the caller has locked, goes
// if all others are in use.
func (s *Store) makeFit(ctx context.Context, repository, digest, key string) error {
	left, err := s.Prune(ctx, s.cfg.MaxBytes)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, image := range left {
		total += image.Bytes
	}
	if total <= s.cfg.MaxBytes {
		return nil
	}
	if err := s.removeLocked(key); err != nil {
		return err
	}
	return fault.New(fault.Exhausted, "image %s@%s: the image store %s may take %d MiB, "+
		"and all other images in it are in use: raise FNR_SANDBOX_MAX_BYTES, or try again later",
		repository, digest, s.cfg.Dir, s.cfg.MaxBytes>>20)
}

// size returns how many bytes came where so many were expected.
func size(n, expected int64) string {
	if n > expected {
		return "more than " + strconv.FormatInt(expected, 10)
	}
	return strconv.FormatInt(n, 10)
}
