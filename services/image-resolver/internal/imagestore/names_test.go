// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

// remember writes names down.
func remember(t *testing.T, store *imagestore.Store, names ...imagestore.Name) {
	t.Helper()
	for _, name := range names {
		if err := store.Remember(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// names returns the names in a store.
func names(t *testing.T, store *imagestore.Store) []imagestore.Name {
	t.Helper()
	all, err := store.Names()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var byTag = []cmp.Option{
	cmpopts.IgnoreUnexported(imagestore.Name{}), cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b imagestore.Name) bool { return a.Tag+a.IndexDigest < b.Tag+b.IndexDigest }),
}

// TestNamesLastAsLongAsTheirImages moves a tag to another image, and removes the images.
func TestNamesLastAsLongAsTheirImages(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	old, current := source.push(t, map[string]string{"a": "1"}), source.push(t, map[string]string{"a": "2"})
	store := newStore(t, dir, source)
	open(t, store, old).Close()
	v1 := imagestore.Name{Repository: repository, Tag: "v1", Digest: old, Command: []string{"/fn", "-q"}, User: "7"}
	remember(t, store, v1, imagestore.Name{Repository: repository, Tag: "latest", Digest: old},
		imagestore.Name{Repository: repository, Tag: "missing", Digest: current}) // not in the store
	open(t, store, current).Close()
	latest := imagestore.Name{Repository: repository, Tag: "latest", Digest: current}
	pinned := imagestore.Name{Repository: repository, Digest: current, Env: []string{"A=b"}}
	pinnedIndex, pinnedOther := pinned, pinned // two indexes may contain the same image
	pinnedIndex.IndexDigest = "sha256:1"
	pinnedOther.IndexDigest = "sha256:2"
	all := []imagestore.Name{v1, latest, pinned, pinnedIndex, pinnedOther}
	remember(t, store, all[1:]...)
	other := newStore(t, dir, source) // another process
	if diff := cmp.Diff(all, names(t, other), byTag...); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if left, err := store.Prune(t.Context(), 0); err != nil || len(left) != 0 {
		t.Fatalf("%v is left, %v", left, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "names")); err != nil || len(entries) != 0 {
		t.Errorf("%d names are left, %v, want none without images", len(entries), err)
	}
}

// TestLongNamesAreNotWritten has an image whose environment is longer than what is kept of a name.
func TestLongNamesAreNotWritten(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digest := source.push(t, map[string]string{"a": "1"})
	store := newStore(t, dir, source)
	open(t, store, digest).Close()
	long := imagestore.Name{Repository: repository, Tag: "v1", Digest: digest, Env: []string{strings.Repeat("x", 128<<10)}}
	err := store.Remember(t.Context(), long)
	if err == nil || !strings.Contains(err.Error(), "131072") || len(names(t, store)) != 0 {
		t.Errorf("error %v and %d names, want a rejection that says how much is kept", err, len(names(t, store)))
	}
}

// TestNamesAreBounded writes more names of an image than are kept.
func TestNamesAreBounded(t *testing.T) {
	const most = 500
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digest := source.push(t, map[string]string{"a": "1"})
	store := newStore(t, dir, source)
	open(t, store, digest).Close()
	for i := range most + 1 {
		remember(t, store, imagestore.Name{Repository: repository, Tag: fmt.Sprintf("v%d", i), Digest: digest})
	}
	if n := len(names(t, store)); n != most {
		t.Errorf("%d names are kept, want %d", n, most)
	}
}

// TestReplacedNamesStay has a process replace names of a removed image while another process prunes names.
func TestReplacedNamesStay(t *testing.T) {
	const tags = 300
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	old, current := source.push(t, map[string]string{"a": "1"}), source.push(t, map[string]string{"a": "2"})
	store, other := newStore(t, dir, source), newStore(t, dir, source)
	name := func(i int, digest string) imagestore.Name {
		return imagestore.Name{Repository: repository, Tag: fmt.Sprintf("v%d", i), Digest: digest}
	}
	open(t, store, old).Close()
	open(t, store, current).Close()
	for i := range tags {
		remember(t, store, name(i, old))
	}
	if err := os.RemoveAll(filepath.Join(dir, "images", strings.TrimPrefix(old, "sha256:"))); err != nil {
		t.Fatal(err)
	}
	var pruning sync.WaitGroup
	pruning.Go(func() {
		if _, err := other.Prune(t.Context(), 64*mib); err != nil {
			t.Error(err)
		}
	})
	for i := range tags {
		remember(t, store, name(i, current))
	}
	pruning.Wait()
	if n := len(names(t, store)); n != tags {
		t.Errorf("%d names are left, want all %d", n, tags)
	}
}
