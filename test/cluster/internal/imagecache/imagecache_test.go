// SPDX-License-Identifier: Apache-2.0

package imagecache_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/imagecache"
)

// build returns an image of one file with that content.
func build(t *testing.T, content string) v1.Image {
	t.Helper()
	files := []image.File{{Path: "/text", Mode: 0o644, Content: content}}
	built, err := image.Builder{Dir: t.TempDir()}.Build(image.Spec{Name: "test/thing:v1", Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestCacheKeepsTheLastImage(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	target := image.Registry{
		Host: strings.TrimPrefix(server.URL, "http://"), Auth: authn.Anonymous,
		Transport: http.DefaultTransport,
	}
	cache := imagecache.Cache{Dir: t.TempDir()}
	for _, key := range []string{"one", "two"} {
		if _, err := target.Push(t.Context(), "test/thing:"+key, build(t, key)); err != nil {
			t.Fatal(err)
		}
		pulled, err := target.Pull(t.Context(), "test/thing:"+key)
		if err != nil {
			t.Fatal(err)
		}
		if before, err := cache.Get("test/thing", key); before != nil || err != nil {
			t.Errorf("before it is kept there is %v, %v", before, err)
		}
		if err := cache.Keep("test/thing", key, pulled); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	if kept, err := cache.Get("test/thing", "one"); kept != nil || err != nil {
		t.Errorf("the image before the last is still there: %v, %v", kept, err)
	}
	kept, err := cache.Get("test/thing", "two")
	if err != nil || kept == nil {
		t.Fatalf("the last image is %v, %v", kept, err)
	}
	if got, want := digest(t, kept), digest(t, build(t, "two")); got != want {
		t.Errorf("the kept image is %s, want %s", got, want)
	}
	if err := validate.Image(kept); err != nil {
		t.Errorf("the kept image is not whole without its registry: %v", err)
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
