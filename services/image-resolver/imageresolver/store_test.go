// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// openStore opens a store in dir of images that are resolved by that configuration.
func openStore(t *testing.T, dir string, cfg imageresolver.Config) (*imageresolver.Store, *imageresolver.Resolver) {
	t.Helper()
	r, _ := start(t, cfg)
	store, err := imageresolver.OpenStore(imageresolver.StoreConfig{
		Dir: dir, MaxBytes: 64 << 20, MaxImageBytes: 32 << 20, MaxImageFiles: 1000,
	}, r, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store, r
}

// pull opens an image by its tag, and returns its root.
func pull(t *testing.T, store *imageresolver.Store, r *imageresolver.Resolver, image string) (string, error) {
	t.Helper()
	resolved, err := resolve(t, r, image)
	if err != nil {
		t.Fatal(err)
	}
	repository, _, _ := strings.Cut(image, ":v1")
	root, release, err := store.Open(t.Context(), repository, resolved.GetDigest(), nil)
	if err == nil {
		release()
	}
	return root, err
}

// TestStoreOfAPrivateRegistry pulls from a registry with a password and an authority of its own.
func TestStoreOfAPrivateRegistry(t *testing.T) {
	authority := testcert.NewAuthority(t)
	users := func() map[string]string { return map[string]string{"user": password} }
	registry := testregistry.Start(t, authority.Server(t, time.Now().Add(time.Hour)), testregistry.BasicAuth(users))
	registry.Push(t, "fn:v1", function)
	cfg := newConfig(t)
	directory := t.TempDir()
	replace(t, filepath.Join(directory, "ca.crt"), authority.PEM)
	cfg.RegistryTLSPaths = imageresolver.Pairs{registry.Host: {directory}}
	cfg.AuthSecretPath = filepath.Join(t.TempDir(), "config.json")
	dockerConfig(t, cfg.AuthSecretPath, registry.Host, "user", password)
	dir := t.TempDir()
	store, r := openStore(t, dir, cfg)
	root, err := pull(t, store, r, registry.Host+"/fn:v1")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "proc")); err != nil || !info.IsDir() {
		t.Errorf("the image is not there: %v", err)
	}
	if images, err := store.List(); err != nil || len(images) != 1 || images[0].Repository != registry.Host+"/fn" {
		t.Errorf("%v is stored, %v, want the image", images, err)
	}
}

// TestStoreOfAMirror pulls from a mirror, and from the registry where the mirror's layer is broken.
func TestStoreOfAMirror(t *testing.T) {
	var broken atomic.Bool
	tamper := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if broken.Load() {
			_, _ = w.Write([]byte("another layer"))
			return
		}
		next.ServeHTTP(w, req)
	}
	registry, mirror := testregistry.Start(t, nil), testregistry.Start(t, nil, testregistry.On("/blobs/", tamper))
	image := registry.Push(t, "fn:v1", function)
	copyTo(t, mirror, "copies/fn:v1", image)
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{registry.Host, mirror.Host}
	cfg.Mirrors = imageresolver.Pairs{registry.Host: {mirror.Host + "/copies"}}
	store, r := openStore(t, t.TempDir(), cfg)
	if _, err := pull(t, store, r, registry.Host+"/fn:v1"); err != nil {
		t.Fatal(err)
	}
	if n := registry.Count("GET /v2/fn/blobs"); n > 0 {
		t.Errorf("%d blobs came from the registry, want all from its mirror", n)
	}
	if _, err := store.Prune(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if _, err := pull(t, store, r, registry.Host+"/fn:v1"); err != nil {
		t.Fatal(err)
	}
	if n := registry.Count("GET /v2/fn/blobs"); n == 0 {
		t.Error("no blob came from the registry, where its mirror has another one")
	}
}

func copyTo(t *testing.T, registry *testregistry.Registry, at string, image v1.Image) {
	t.Helper()
	ref, err := name.ParseReference(registry.Host+"/"+at, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithTransport(&http.Transport{DisableKeepAlives: true})); err != nil {
		t.Fatal(err)
	}
}

// TestRegistryThatStopsInTheMiddle breaks the connection in the middle of a layer, once and for ever.
func TestRegistryThatStopsInTheMiddle(t *testing.T) {
	image, err := random.Image(6<<20, 1) // more than other answers may have
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ breaks, want int32 }{
		"once": {1, 0}, "for ever": {1000, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Int32
			cut := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if req.Method == http.MethodGet && broken.Load() < tc.breaks {
					w = &breaking{ResponseWriter: w, left: 3 << 20, broke: &broken}
				}
				next.ServeHTTP(w, req)
			}
			registry := testregistry.Start(t, nil, testregistry.On("/blobs/", cut))
			copyTo(t, registry, "fn:v1", image)
			cfg := newConfig(t)
			cfg.InsecureRegistries = []string{registry.Host}
			dir := t.TempDir()
			store, _ := openStore(t, dir, cfg)
			digest, err := image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			_, release, err := store.Open(t.Context(), registry.Host+"/fn", digest.String(), nil)
			if tc.want == 0 {
				if err != nil {
					t.Fatal(err)
				}
				release()
				return
			}
			named := "image " + registry.Host + "/fn@" + digest.String()
			if err == nil || !strings.Contains(err.Error(), named) || broken.Load() != tc.want {
				t.Errorf("error %v after %d attempts, want one that says %q after %d", err, broken.Load(), named, tc.want)
			}
			for _, part := range []string{"stages", "images", "locks"} {
				if left, err := os.ReadDir(filepath.Join(dir, part)); err != nil || len(left) > 0 {
					t.Errorf("%v is left in %s, %v", left, part, err)
				}
			}
		})
	}
}

// breaking is an answer that breaks off after some bytes.
type breaking struct {
	http.ResponseWriter
	left  int
	broke *atomic.Int32
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.broke.Add(1)
		_, _ = b.ResponseWriter.Write(p[:b.left])
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

// TestTamperedManifestIsNotStored has a registry that answers with another manifest.
func TestTamperedManifestIsNotStored(t *testing.T) {
	other := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(`{"config":{},"layers":[]}`))
	}
	registry := testregistry.Start(t, nil, testregistry.On("/manifests/sha256:", other))
	image := registry.Push(t, "fn:v1", function)
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{registry.Host}
	store, _ := openStore(t, t.TempDir(), cfg)
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = store.Open(t.Context(), registry.Host+"/fn", digest.String(), nil)
	if err == nil {
		t.Fatal("another manifest was accepted")
	}
	expectText(t, err, digest.String(), "tampers with it")
}
