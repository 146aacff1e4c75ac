// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// spec is an image with files of every kind.
func spec(t *testing.T, content string) image.Spec {
	t.Helper()
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return image.Spec{
		Name: "test/thing:v1",
		Files: []image.File{
			{Path: "/program", Mode: 0o755, Source: source},
			{Path: "/text", Mode: 0o644, Content: "text"},
			{Path: "/tmp", Mode: 0o777, Dir: true},
			{Path: "/link", Mode: 0o777, Link: "/program"},
		},
		Entrypoint: []string{"/program"},
		Cmd:        []string{"argument"},
	}
}

func buildImage(t *testing.T, dir string, spec image.Spec) v1.Image {
	t.Helper()
	built, err := image.Builder{Dir: dir}.Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestImageIsValid(t *testing.T) {
	dir := t.TempDir()
	for _, reason := range []string{"newly built", "with a layer that was kept"} {
		if err := validate.Image(buildImage(t, dir, spec(t, "program"))); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestDigestFollowsTheContent(t *testing.T) {
	first := digest(t, buildImage(t, t.TempDir(), spec(t, "program")))
	if again := digest(t, buildImage(t, t.TempDir(), spec(t, "program"))); again != first {
		t.Errorf("the same content gives %s and %s", first, again)
	}
	if other := digest(t, buildImage(t, t.TempDir(), spec(t, "PROGRAM"))); other == first {
		t.Error("another content gives the same digest")
	}
}

// TestSameLayerIsMadeByMany builds many images of one layer at once, as the clusters of two clones
// do, or a single cluster: several functions are one program.
func TestSameLayerIsMadeByMany(t *testing.T) {
	dir, same := t.TempDir(), spec(t, strings.Repeat("program", 1<<16))
	builds, start := new(errgroup.Group), make(chan struct{})
	for range 32 {
		builds.Go(func() error {
			<-start
			_, err := image.Builder{Dir: dir}.Build(same)
			return err
		})
	}
	close(start)
	if err := builds.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the cache has %v, %v, want one layer", left, err)
	}
	if err := validate.Image(buildImage(t, dir, same)); err != nil {
		t.Error(err)
	}
}

func TestPushIsDoneOnce(t *testing.T) {
	var uploads atomic.Int32
	store := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			uploads.Add(1)
		}
		store.ServeHTTP(w, r)
	}))
	defer server.Close()
	target := image.Registry{
		Host: strings.TrimPrefix(server.URL, "http://"), Auth: authn.Anonymous,
		Transport: http.DefaultTransport,
	}
	built := buildImage(t, t.TempDir(), spec(t, "program"))
	for _, want := range []bool{true, false} {
		before := uploads.Load()
		pushed, err := target.Push(t.Context(), "test/thing:v1", built)
		if err != nil {
			t.Fatal(err)
		}
		if uploaded := uploads.Load() > before; pushed != want || uploaded != want {
			t.Errorf("pushed %t, uploaded %t, want %t", pushed, uploaded, want)
		}
	}
}

// TestLayerIsUploadedOnce pushes one program's images to several repositories of a registry that
// keeps layers by repository, as real ones do.
func TestLayerIsUploadedOnce(t *testing.T) {
	var uploads, mounts atomic.Int32
	store := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mount := r.URL.Query().Get("mount"); {
		case r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/"):
			http.NotFound(w, r)
			return
		case mount != "" && r.URL.Query().Get("from") == "test/first":
			mounts.Add(1)
			w.WriteHeader(http.StatusCreated)
			return
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/"):
			uploads.Add(1)
		}
		store.ServeHTTP(w, r)
	}))
	defer server.Close()
	target := image.Registry{
		Host: strings.TrimPrefix(server.URL, "http://"), Auth: authn.Anonymous, Transport: http.DefaultTransport,
	}.WithMounts()
	built := buildImage(t, t.TempDir(), spec(t, "program"))
	for _, name := range []string{"test/first:v1", "test/second:v1", "test/third:v1"} {
		if _, err := target.Push(t.Context(), name, built); err != nil {
			t.Fatal(err)
		}
	}
	// Each image also has a configuration, which is uploaded.
	if uploads.Load() != 1+3 || mounts.Load() != 2 {
		t.Errorf("%d uploads and %d mounts, want one upload of the layer, and two mounts", uploads.Load(), mounts.Load())
	}
}

func TestSameComparesTags(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	target := image.Registry{
		Host: strings.TrimPrefix(server.URL, "http://"), Auth: authn.Anonymous,
		Transport: http.DefaultTransport,
	}
	for name, content := range map[string]string{"thing:a": "one", "thing:b": "one", "thing:c": "two"} {
		if _, err := target.Push(t.Context(), name, buildImage(t, t.TempDir(), spec(t, content))); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		reason, tag, other string
		want               bool
	}{
		{"one image with two tags", "a", "b", true},
		{"two images", "a", "c", false},
		{"a tag that is missing", "a", "d", false},
		{"two tags that are missing", "d", "e", false},
	} {
		same, err := target.Same(t.Context(), "thing", test.tag, test.other)
		if err != nil || same != test.want {
			t.Errorf("%s: %t, %v", test.reason, same, err)
		}
	}
}

func digest(t *testing.T, built v1.Image) v1.Hash {
	t.Helper()
	digest, err := built.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}
