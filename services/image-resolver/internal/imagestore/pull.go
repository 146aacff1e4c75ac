// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

// Names in the directory of a stored image.
const (
	rootfs = "rootfs"
	record = "image.json"
)

// Mount points that a pull creates in each image. Sandboxes mount images read-only, and cannot create mount points.
var (
	mountDirectories = []string{"proc", "dev", "tmp", "sys"}
	mountFiles       = []string{"etc/resolv.conf", "etc/hosts", "etc/hostname"}
)

// Record describes an image in the store.
type Record struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
	// Bytes is an upper bound of the image's disk space. Files is the number of its files, directories and links.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
	// Used is the time when a process last opened or released the image.
	Used time.Time `json:"-"`
}

// pullSlots limits the number of concurrent pulls. Unfinished pulls need disk space that does not yet count against the
// store's limit. The limit for each registry is lower, so that a single slow registry cannot block all pulls.
type pullSlots struct {
	all *semaphore.Weighted

	mu sync.Mutex
	// byRegistry contains a semaphore for each registry, which limits the pulls from this registry.
	byRegistry map[string]*semaphore.Weighted
}

// Maximum numbers of concurrent pulls, in total and from a single registry.
const (
	maxPulls         = 4
	maxRegistryPulls = 3
)

func newPullSlots() *pullSlots {
	return &pullSlots{all: semaphore.NewWeighted(maxPulls), byRegistry: map[string]*semaphore.Weighted{}}
}

// acquire waits until a pull from the registry may begin. The caller must call release after the pull.
func (s *pullSlots) acquire(ctx context.Context, registry string) (release func(), err error) {
	s.mu.Lock()
	own := s.byRegistry[registry]
	if own == nil {
		own = semaphore.NewWeighted(maxRegistryPulls)
		s.byRegistry[registry] = own
	}
	s.mu.Unlock()
	if err := own.Acquire(ctx, 1); err != nil {
		return nil, fault.New(fault.Of(err), "%w", context.Cause(ctx))
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		own.Release(1)
		return nil, fault.New(fault.Of(err), "%w", context.Cause(ctx))
	}
	return func() {
		s.all.Release(1)
		own.Release(1)
	}, nil
}

// pullTimeout bounds the duration of a pull, so that a hanging pull does not block other pulls forever.
const pullTimeout = 2 * time.Hour

// fetchImage pulls an image into the store, unless another process has stored the image in the meantime.
func (s *Store) fetchImage(ctx context.Context, repository, digest, key string, p *flight) error {
	lock, err := s.lockForPull(ctx, key, p.setPhase)
	if err != nil {
		return err
	}
	defer s.unlockPulled(key, lock)
	if s.hasImage(key) {
		return nil
	}
	p.setPhase("waiting for other pulls")
	registry, _, _ := strings.Cut(repository, "/")
	release, err := s.pulls.acquire(ctx, registry)
	if err != nil {
		return err
	}
	defer release()
	p.begun.Store(true)
	bounded, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	err = s.pullImage(bounded, repository, digest, key, p.setPhase)
	if bounded.Err() != nil && ctx.Err() == nil {
		return fault.New(fault.Unavailable, "%w: the pull has taken %v, which is the limit", err, pullTimeout)
	}
	return err
}

// unlockPulled releases the lock of an image after a pull. If the pull failed, it also removes the lock file. It keeps
// a newer file at the same path, which another process locked after removeLocked removed the old file.
func (s *Store) unlockPulled(key string, lock *os.File) {
	if name := path.Join(locksDir, key); !s.hasImage(key) && s.isSameFile(lock, name) {
		_ = s.root.Remove(name) // if this fails, the next sweep removes the file
	}
	_ = lock.Close()
}

// lockForPull acquires the exclusive lock of an image. It waits for other processes that use or pull the image.
func (s *Store) lockForPull(ctx context.Context, key string, report func(string)) (*os.File, error) {
	lock, err := s.tryLock(path.Join(locksDir, key), exclusive)
	if err == errBusy { //nolint:errorlint // it is never wrapped
		report("waiting for another process that pulls the image")
		lock, err = s.lock(ctx, path.Join(locksDir, key), exclusive)
	}
	return lock, err
}

// pullImage pulls an image into a temporary directory and then moves it into the store. The caller must hold the
// image's lock and a slot of pullSlots.
func (s *Store) pullImage(ctx context.Context, repository, digest, key string, report func(string)) error {
	stage, err := s.newStage()
	if err != nil {
		return err
	}
	defer stage.discard()
	p := &pull{store: s, stage: stage, repository: repository, digest: digest, report: report}
	if err := p.makeImage(ctx); err != nil {
		return s.nameImage(repository, digest, err)
	}
	if err := s.root.Rename(path.Join(stage.dir, key), path.Join(imagesDir, key)); err != nil {
		return s.explainDiskError(err)
	}
	s.touchImage(key)
	return s.makeFit(ctx, repository, digest, key)
}

func (s *Store) nameImage(repository, digest string, err error) error {
	err = s.explainDiskError(err)
	return fault.New(fault.Of(err), "image %s@%s: %w", repository, digest, err)
}

// pull is a running download of an image into a temporary directory, with its progress.
type pull struct {
	store              *Store
	stage              *stage
	repository, digest string
	report             func(string)
	manifest           *oci.Manifest
	done               int   // number of applied layers
	bytes              int64 // total size of the downloaded layers
	said               time.Time
}

// makeImage downloads and unpacks the image into a temporary directory of the store.
func (p *pull) makeImage(ctx context.Context) error {
	p.report("reading the image's manifest")
	manifest, config, err := p.store.cfg.Source.Image(ctx, p.repository, p.digest)
	if err != nil {
		return err
	}
	if manifest.LayerBytes > p.store.cfg.MaxImageBytes {
		return fault.New(fault.Precondition, "its layers have %d MiB, and an image may take %d MiB unpacked: "+
			"use a smaller image, or function pods",
			manifest.LayerBytes>>20, p.store.cfg.MaxImageBytes>>20)
	}
	if err := p.store.mayFit(ctx, p.repository, p.digest, manifest.LayerBytes); err != nil {
		return err
	}
	p.manifest = manifest
	tree, err := p.unpackLayers(ctx, config)
	if err != nil {
		return err
	}
	return p.writeRecord(tree)
}

// unpackLayers downloads and unpacks the layers sequentially, so that the disk contains at most a single compressed
// layer in addition to the unpacked files.
func (p *pull) unpackLayers(ctx context.Context, config oci.RootFS) (*unpack.Tree, error) {
	root, err := p.stage.makeRoot(path.Join(p.digest[len("sha256:"):], rootfs))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	tree := unpack.New(root, unpack.Limits{Bytes: p.store.cfg.MaxImageBytes, Files: p.store.cfg.MaxImageFiles})
	for i, layer := range p.manifest.Layers {
		if err := p.applyLayer(ctx, tree, layer, config.DiffIDs[i]); err != nil {
			return nil, err
		}
		p.done++
	}
	if err := tree.Mountpoints(mountDirectories, mountFiles); err != nil {
		return nil, err
	}
	err = errors.Join(tree.AddLines("etc/hosts", missingHosts), tree.AddLines("etc/passwd", missingUsers(config.User)))
	if err != nil {
		return nil, err
	}
	return tree, tree.Directory(path.Join("/", config.WorkingDir)) // containers expect that the working directory exists
}

// missingHosts returns the lines for localhost if the content of /etc/hosts lacks them. Functions use the name
// localhost to connect to servers that they have started.
func missingHosts(hosts string) string {
	if strings.Contains(hosts, "localhost") {
		return ""
	}
	return "127.0.0.1\tlocalhost\n::1\tlocalhost\n"
}

// unprivileged is the ID of the sandbox's user if the user of the image is root, or a name instead of an ID.
const unprivileged = 65532

// missingUsers returns a function that finds the users missing in /etc/passwd. The returned function gets the file's
// content, and returns lines for root and the sandbox's user. Programs look up their own user in this file.
func missingUsers(image string) func(passwd string) string {
	name, _, _ := strings.Cut(image, ":")
	id, err := strconv.ParseUint(name, 10, 31)
	if err != nil || id == 0 {
		id = unprivileged
	}
	return func(passwd string) string {
		return missingUser(passwd, "root", 0) + missingUser(passwd, "function", id)
	}
}

// missingUser returns a line that adds a user to /etc/passwd. It is empty if passwd already contains the user ID.
func missingUser(passwd, name string, id uint64) string {
	if regexp.MustCompile(fmt.Sprintf("(?m)^[^:]*:[^:]*:%d:", id)).MatchString(passwd) {
		return ""
	}
	return fmt.Sprintf("%s:x:%d:%d::/tmp:/sbin/nologin\n", name, id, id)
}

func (p *pull) applyLayer(ctx context.Context, tree *unpack.Tree, layer oci.Layer, diffID string) error {
	blob, err := p.downloadLayer(ctx, layer)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	return tree.Compressed(ctx, blob, diffID)
}

// reportProgress reports the progress of the pull, at most ten times a second.
func (p *pull) reportProgress(bytes int64) {
	if time.Since(p.said) < time.Second/10 {
		return
	}
	p.said = time.Now()
	p.report(fmt.Sprintf("pulling the image, %d of %d layers, %d of %d MiB",
		p.done, len(p.manifest.Layers), (p.bytes+bytes)>>20, p.manifest.LayerBytes>>20))
}

// writeRecord writes the image's record and flushes the whole image to the disk, because images in the store must
// be complete even after a crash of the machine.
func (p *pull) writeRecord(tree *unpack.Tree) error {
	content, err := json.Marshal(Record{
		Repository: p.repository, Digest: p.digest, Bytes: tree.Bytes(), Files: tree.Files(),
	})
	if err != nil {
		return err
	}
	dir := path.Join(p.stage.dir, p.digest[len("sha256:"):])
	if err := p.store.root.WriteFile(path.Join(dir, record), content, 0o600); err != nil {
		return err
	}
	if err := p.store.shareDirectory(dir); err != nil {
		return err
	}
	file, err := p.store.root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return syncAll(file)
}

// shareDirectory permits the store's Unix group to read an image.
func (s *Store) shareDirectory(dir string) error {
	mode := os.FileMode(0o700)
	if s.cfg.Group != 0 {
		mode = 0o750
		if err := s.root.Chown(dir, -1, s.cfg.Group); err != nil {
			return err
		}
	}
	return s.root.Chmod(dir, mode)
}
