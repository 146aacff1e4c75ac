// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// images is a source in a directory, which child processes can use too.
type images struct {
	dir string
	// before, if not nil, is called before each layer is read.
	before func(ctx context.Context, digest string) error
	layers atomic.Int64 // that were asked for
}

// pushed is an image in a source.
type pushed struct {
	Manifest oci.Manifest
	RootFS   oci.RootFS
}

// push adds an image with a layer for each of the contents, and returns its digest.
func (i *images) push(t testing.TB, layers ...map[string]string) string {
	t.Helper()
	var image pushed
	for _, files := range layers {
		plain := archive(t, files)
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(plain)
		_ = w.Close()
		i.add(t, &image, packed.Bytes(), oci.Digest(plain))
	}
	return i.seal(t, image)
}

// add adds a layer to an image.
func (i *images) add(t testing.TB, image *pushed, blob []byte, diffID string) {
	t.Helper()
	digest := oci.Digest(blob)
	i.write(t, digest, blob)
	image.Manifest.Layers = append(image.Manifest.Layers, oci.Layer{Digest: digest, Size: int64(len(blob))})
	image.Manifest.LayerBytes += int64(len(blob))
	image.RootFS.DiffIDs = append(image.RootFS.DiffIDs, diffID)
}

// seal adds the manifest of an image.
func (i *images) seal(t testing.TB, image pushed) string {
	t.Helper()
	raw, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	i.write(t, oci.Digest(raw), raw)
	return oci.Digest(raw)
}

func (i *images) write(t testing.TB, digest string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(i.dir, digest), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// archive returns a layer with files.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(content))
	}
	_ = w.Close()
	return out.Bytes()
}

func (i *images) Image(_ context.Context, _, digest string) (*oci.Manifest, oci.RootFS, error) {
	var image pushed
	raw, err := os.ReadFile(filepath.Join(i.dir, digest))
	if err != nil {
		return nil, oci.RootFS{}, fault.New(fault.Precondition, "manifest unknown")
	}
	return &image.Manifest, image.RootFS, json.Unmarshal(raw, &image)
}

func (i *images) Layer(ctx context.Context, _, digest string, read imagestore.ReadLayer) error {
	i.layers.Add(1)
	if i.before != nil {
		if err := i.before(ctx, digest); err != nil {
			return err
		}
	}
	file, err := os.Open(filepath.Join(i.dir, digest))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return read(file, func(error) {})
}

const mib = 1 << 20

// repository is where the images of these tests are.
const repository = "example.com/fn"

// newStore opens a store in dir that is closed at the end of the test.
func newStore(t testing.TB, dir string, source *images, changes ...func(*imagestore.Config)) *imagestore.Store {
	t.Helper()
	cfg := imagestore.Config{
		Dir: dir, MaxBytes: 64 * mib, MaxImageBytes: 32 * mib, MaxImageFiles: 1000, Source: source,
		Log: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&cfg)
	}
	store, err := imagestore.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// openImage is an open image.
type openImage struct {
	Root  string
	Close func()
}

// open opens an image.
func open(t testing.TB, store *imagestore.Store, digest string) openImage {
	t.Helper()
	root, release, err := store.Open(t.Context(), repository, digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	return openImage{root, release}
}

// expectFile checks the content of a file in an image.
func expectFile(t testing.TB, image openImage, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(image.Root, name)); err != nil || string(got) != want {
		t.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// left returns what is in a store beside its directories, without the files of images.
func left(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	for _, part := range []string{"images", "stages", "locks"} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			all = append(all, part+"/"+entry.Name())
		}
	}
	return strings.Join(all, " ")
}

// expectWhole checks that each image in a store has all files of the images of a test.
func expectWhole(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	roots, _ := filepath.Glob(filepath.Join(dir, "images", "*", "rootfs"))
	for _, root := range roots {
		for name, content := range want {
			got, err := fs.ReadFile(os.DirFS(root), name)
			if err != nil || string(got) != content {
				t.Fatalf("%s of %s has %d bytes, %v, want %d", name, root, len(got), err, len(content))
			}
		}
	}
}
