// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

func TestImageIsPulledOnce(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digest := source.push(t, map[string]string{"a": "1", "b": "1"}, map[string]string{"a": "2", ".wh.b": ""})
	store := newStore(t, dir, source)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			root, release, err := store.Open(t.Context(), repository, digest, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			expectFile(t, openImage{root, release}, "a", "2")
			if _, err := os.Lstat(filepath.Join(root, "b")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the upper layer hides b, got %v", err)
			}
		})
	}
	callers.Wait()
	open(t, newStore(t, dir, source), digest).Close() // another process
	if n := source.layers.Load(); n != 2 {
		t.Errorf("%d layers were pulled, want each of both once", n)
	}
}

func TestMountpointsAreThere(t *testing.T) {
	for dir, want := range map[string]string{"/srv/app": "srv/app", "srv": "srv", "/app/../srv/.": "srv", "": "."} {
		source := &images{dir: t.TempDir()}
		image := pushed{RootFS: oci.RootFS{WorkingDir: dir, User: "1000:users"}}
		plain := archive(t, map[string]string{"fn": "x"})
		source.add(t, &image, plain, oci.Digest(plain))
		store := newStore(t, t.TempDir(), source)
		opened := open(t, store, source.seal(t, image))
		defer opened.Close()
		for _, name := range []string{"proc", "dev", "tmp", want} {
			if info, err := os.Stat(filepath.Join(opened.Root, name)); err != nil || !info.IsDir() {
				t.Errorf("%s: %v, want a directory", name, err)
			}
		}
		expectFile(t, opened, "etc/resolv.conf", "")
		expectFile(t, opened, "etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n")
		expectFile(t, opened, "etc/passwd", "root:x:0:0::/tmp:/sbin/nologin\nfunction:x:1000:1000::/tmp:/sbin/nologin\n")
	}
}

func TestPhasesOfAPull(t *testing.T) {
	source := &images{dir: t.TempDir()}
	digest := source.push(t, map[string]string{"a": "1"})
	var phases []string
	_, release, err := newStore(t, t.TempDir(), source).Open(t.Context(), repository, digest, func(phase string) {
		phases = append(phases, phase)
	})
	if err != nil {
		t.Fatal(err)
	}
	release()
	known := []string{
		"waiting for other pulls", "reading the image's manifest", "pulling the image, 0 of 1 layers, 0 of 0 MiB",
	}
	for _, phase := range phases { // a caller gets the latest ones only
		if !slices.Contains(known, phase) {
			t.Errorf("phase %q, want what the pull does", phase)
		}
	}
}

func TestLeastRecentlyUsedImageGoes(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	big := strings.Repeat("x", mib)
	var digests []string
	for _, name := range []string{"a", "b", "c"} {
		digests = append(digests, source.push(t, map[string]string{name: big}))
	}
	store := newStore(t, dir, source, func(cfg *imagestore.Config) {
		cfg.MaxBytes = 5 * mib / 2
		cfg.MaxImageBytes = 2 * mib
	})
	inUse := open(t, store, digests[0])
	open(t, store, digests[1]).Close()
	open(t, store, digests[2]).Close()
	if got := stored(t, store); len(got) != 2 || got[0] != digests[0] || got[1] != digests[2] {
		t.Errorf("%v is stored, want what is in use, and the newest", got)
	}
	held := open(t, store, digests[2])
	_, _, err := store.Open(t.Context(), repository, digests[1], nil)
	if fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "all other images in it are in use") {
		t.Errorf("error %v, want one that says that nothing can be removed", err)
	}
	expectFile(t, inUse, "a", big)
	inUse.Close()
	held.Close()
	open(t, store, digests[1]).Close()
	if got := stored(t, store); len(got) != 2 || got[1] != digests[1] {
		t.Errorf("%v is stored, want the one of the last use among them", got)
	}
	if got, err := store.Prune(t.Context(), 0); err != nil || len(got) > 0 || left(t, dir) != "" {
		t.Errorf("%v and %q are left, %v, want nothing", got, left(t, dir), err)
	}
}

func stored(t *testing.T, store *imagestore.Store) (digests []string) {
	t.Helper()
	all, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range all {
		digests = append(digests, image.Digest)
	}
	return digests
}

// TestRefusedImages pulls images that must not be stored. The errors name the image and the reason,
// and nothing is left.
func TestRefusedImages(t *testing.T) {
	plain := archive(t, map[string]string{"a": strings.Repeat("x", 100)})
	layer := func(change func(*pushed)) func(t *testing.T, source *images) string {
		return func(t *testing.T, source *images) string {
			t.Helper()
			var image pushed
			source.add(t, &image, plain, oci.Digest(plain))
			change(&image)
			return source.seal(t, image)
		}
	}
	tests := map[string]struct {
		push func(t *testing.T, source *images) string
		want string
	}{
		"entry that leads out": {func(t *testing.T, source *images) string {
			t.Helper()
			return source.push(t, map[string]string{"../../x": "1"})
		}, `its entry "../../x" leads out of the image`},
		"too many files": {func(t *testing.T, source *images) string {
			t.Helper()
			files := map[string]string{}
			for i := range 1200 {
				files["f"+strings.Repeat("x", i%50)+string(rune('a'+i/50))] = ""
			}
			return source.push(t, files)
		}, "more than 1000 files"},
		"too large": {func(t *testing.T, source *images) string {
			t.Helper()
			return source.push(t, map[string]string{"a": strings.Repeat(string(make([]byte, 1000))+"abc", 40_000)})
		}, "32 MiB"},
		"more than its size": {layer(func(i *pushed) { i.Manifest.Layers[0].Size -= 10 }), "the registry sent more than"},
		"less than its size": {layer(func(i *pushed) { i.Manifest.Layers[0].Size += 10 }), "bytes of the layer"},
		"other layers":       {layer(func(i *pushed) { i.RootFS.DiffIDs[0] = oci.Digest(nil) }), "push the image again"},
		"layers too large":   {layer(func(i *pushed) { i.Manifest.LayerBytes = 1 << 40 }), "use a smaller image"},
		"digest of its own": {
			layer(func(i *pushed) { i.Manifest.Layers[0].Digest = "md5:0" }), `the digest "md5:0" is not supported`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			source, dir := &images{dir: t.TempDir()}, t.TempDir()
			digest := tc.push(t, source)
			_, _, err := newStore(t, dir, source).Open(t.Context(), repository, digest, nil)
			if err == nil || !strings.Contains(err.Error(), "image "+repository+"@"+digest+": ") ||
				!strings.Contains(err.Error(), tc.want) || fault.Of(err) != fault.Precondition {
				t.Errorf("error %v, want one that names the image and says %q", err, tc.want)
			}
			if got := left(t, dir); got != "" {
				t.Errorf("%s is left in the store", got)
			}
		})
	}
	t.Run("wrong content", func(t *testing.T) {
		source, dir := &images{dir: t.TempDir()}, t.TempDir()
		digest := layer(func(i *pushed) {
			source.write(t, i.Manifest.Layers[0].Digest, bytes.Repeat([]byte("y"), len(plain)))
		})(t, source)
		_, _, err := newStore(t, dir, source).Open(t.Context(), repository, digest, nil)
		if err == nil || !strings.Contains(err.Error(), "tampers with it") || left(t, dir) != "" {
			t.Errorf("error %v and %q left, want a rejection and nothing", err, left(t, dir))
		}
	})
}

// TestImagesThatAreOnlyKeptGiveWay opens an image while all others are open, one of them without being needed.
func TestImagesThatAreOnlyKeptGiveWay(t *testing.T) {
	source := &images{dir: t.TempDir()}
	big := strings.Repeat("x", mib)
	var digests []string
	for _, name := range []string{"a", "b", "c"} {
		digests = append(digests, source.push(t, map[string]string{name: big}))
	}
	store := newStore(t, t.TempDir(), source, func(cfg *imagestore.Config) {
		cfg.MaxBytes = 5 * mib / 2
		cfg.MaxImageBytes = 2 * mib
	})
	inUse, kept := open(t, store, digests[0]), open(t, store, digests[1])
	defer inUse.Close()
	asked := 0
	store.WhenFull(func() {
		if asked++; asked == 1 {
			kept.Close()
		}
	})
	open(t, store, digests[2]).Close()
	if got := stored(t, store); asked != 1 || len(got) != 2 || got[0] != digests[0] || got[1] != digests[2] {
		t.Errorf("%v is stored after %d calls, want what is in use, and the newest", got, asked)
	}
}

// TestPullWithoutCapacityIsNotBegun opens an image for which there is no capacity beside those in use.
func TestPullWithoutCapacityIsNotBegun(t *testing.T) {
	source := &images{dir: t.TempDir()}
	var digests []string
	for i := range 2 {
		plain := archive(t, map[string]string{strconv.Itoa(i): strings.Repeat("x", mib)})
		var image pushed
		source.add(t, &image, plain, oci.Digest(plain))
		digests = append(digests, source.seal(t, image))
	}
	store := newStore(t, t.TempDir(), source, func(cfg *imagestore.Config) {
		cfg.MaxBytes, cfg.MaxImageBytes = 2*mib, 2*mib
	})
	defer open(t, store, digests[0]).Close()
	_, _, err := store.Open(t.Context(), repository, digests[1], nil)
	if fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "all other images in it are in use") {
		t.Errorf("error %v, want one that says that nothing can be removed", err)
	}
	if n := source.layers.Load(); n != 1 {
		t.Errorf("%d layers were pulled, want that of the first image", n)
	}
}
