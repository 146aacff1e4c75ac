// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Name is an image name with the digest to which it was last resolved. It also contains the command of the image. A
// stored image can therefore be used by its Name, without its registry.
type Name struct {
	Repository string `json:"repository"`
	// Tag is empty if the image name contains a digest instead of a tag.
	Tag string `json:"tag,omitempty"`
	// Digest is the digest of the image. IndexDigest is the digest of its multi-platform index, if any.
	Digest      string   `json:"digest"`
	IndexDigest string   `json:"indexDigest,omitempty"`
	Command     []string `json:"command,omitempty"`
	Entrypoint  []string `json:"entrypoint,omitempty"`
	Env         []string `json:"env,omitempty"`
	WorkingDir  string   `json:"workingDir,omitempty"`
	User        string   `json:"user,omitempty"`

	written time.Time
}

const (
	// maxNames is the maximum number of names in a store. If there are more, the oldest names are removed.
	maxNames = 500
	// maxNameBytes is the maximum size of a stored name with the image's command and environment, in bytes. A limit is
	// necessary, because the author of the image chooses the command and environment.
	maxNameBytes = 128 << 10
)

// Remember stores an image name if the store contains the image. It replaces a name with the same repository and tag.
func (s *Store) Remember(ctx context.Context, name Name) error {
	if !s.Has(name.Digest) {
		return nil
	}
	content, err := json.Marshal(name)
	if err != nil {
		return err
	}
	if len(content) > maxNameBytes {
		return fmt.Errorf("the command and the environment of the image have %d bytes, and at most %d are kept",
			len(content), maxNameBytes)
	}
	file := path.Join(namesDir, name.fileName())
	if old, err := s.root.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	lock, err := s.lock(ctx, pruneLock, exclusive)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := s.replaceFile(file, content); err != nil {
		return err
	}
	if entries, err := fs.ReadDir(s.root.FS(), namesDir); err != nil || len(entries) <= maxNames {
		return err
	}
	return s.pruneNames()
}

// replaceFile replaces a file atomically, so that other processes never read an incomplete file.
func (s *Store) replaceFile(file string, content []byte) error {
	st, err := s.newStage()
	if err != nil {
		return err
	}
	defer st.discard()
	staged := path.Join(st.dir, "name")
	if err := s.root.WriteFile(staged, content, 0o600); err != nil {
		return s.explainDiskError(err)
	}
	return s.explainDiskError(s.root.Rename(staged, file))
}

func (n Name) fileName() string {
	which := n.Repository + ":" + n.Tag
	if n.Tag == "" {
		which = n.Repository + "@" + cmp.Or(n.IndexDigest, n.Digest)
	}
	sum := sha256.Sum256([]byte(which))
	return hex.EncodeToString(sum[:]) + ".json"
}

// Same reports whether n and other have the same repository, tag and digest.
func (n Name) Same(other Name) bool {
	return n.fileName() == other.fileName() && n.Digest == other.Digest
}

// Has reports whether the store contains the image with the given digest.
func (s *Store) Has(digest string) bool {
	key, err := keyOf(digest)
	return err == nil && s.hasImage(key)
}

// Names returns the stored names whose images are in the store. The most recent name is first.
func (s *Store) Names() ([]Name, error) {
	names, _, err := s.readNames()
	return names, err
}

func (s *Store) readNames() (names []Name, files []string, err error) {
	entries, err := fs.ReadDir(s.root.FS(), namesDir)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
		name, err := s.readName(entry.Name())
		if err == nil && s.hasImage(strings.TrimPrefix(name.Digest, "sha256:")) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b Name) int { return b.written.Compare(a.written) })
	return names, files, nil
}

func (s *Store) readName(file string) (name Name, err error) {
	file = path.Join(namesDir, file)
	content, err := s.root.ReadFile(file)
	if err != nil {
		return name, err
	}
	info, err := s.root.Lstat(file)
	if err != nil {
		return name, err
	}
	name.written = info.ModTime()
	return name, json.Unmarshal(content, &name)
}

// pruneNames removes names whose images are not in the store, and the oldest names if there are more than maxNames. The
// caller must hold pruneLock. Otherwise, it could remove a name that another process has just replaced.
func (s *Store) pruneNames() error {
	names, files, err := s.readNames()
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, name := range names[:min(len(names), maxNames)] {
		keep[name.fileName()] = true
	}
	for _, file := range files {
		if !keep[file] {
			err = errors.Join(err, s.root.Remove(path.Join(namesDir, file)))
		}
	}
	return err
}
