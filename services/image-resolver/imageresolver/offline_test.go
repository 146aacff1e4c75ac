// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// openLocal opens a store in dir; a nil resolver is offline.
func openLocal(t *testing.T, dir, prefix string, r *imageresolver.Resolver) *imageresolver.Local {
	t.Helper()
	local, err := imageresolver.OpenLocal(imageresolver.StoreConfig{
		Dir: dir, MaxBytes: 64 << 20, MaxImageBytes: 32 << 20, MaxImageFiles: 1000,
	}, r, prefix, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return local
}

// TestOffline uses images that were pulled before, by all that they were called, without a registry.
func TestOffline(t *testing.T) {
	registry := testregistry.Start(t, nil)
	for _, tag := range []string{"fn:v1.0.0", "fn:v1.2.0", "fn:v2.0.0"} {
		registry.Push(t, tag, v1.Config{Entrypoint: []string{"/" + tag}, Env: []string{"A=b"}, WorkingDir: "/srv", User: "7"})
	}
	repository := registry.Host + "/fn"
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{registry.Host}
	r, _ := start(t, cfg)
	dir := t.TempDir()
	online := openLocal(t, dir, "", r)
	for _, tag := range []string{"v1.0.0", "^1.0"} {
		if _, err := online.Pull(t.Context(), repository, tag, nil); err != nil {
			t.Fatal(err)
		}
	}
	calls := registry.Count("")
	local := openLocal(t, dir, registry.Host, nil)
	known, err := local.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: "fn:v1.2.0"})
	if err != nil {
		t.Fatal(err)
	}
	if known.GetReference() != repository+":v1.2.0" || !slices.Equal(known.GetCommand(), []string{"/fn:v1.2.0"}) ||
		!slices.Equal(known.GetEnv(), []string{"A=b"}) || known.GetWorkingDir() != "/srv" || known.GetUser() != "7" {
		t.Errorf("got %v, want what the registry said", known)
	}
	tags, err := local.ListTags(t.Context(), &imageresolverv1.ListTagsRequest{Repository: repository})
	if slices.Sort(tags.GetTags()); err != nil || !slices.Equal(tags.GetTags(), []string{"v1.0.0", "v1.2.0"}) {
		t.Errorf("tags %v, %v, want the tags of pulls", tags.GetTags(), err)
	}
	for name, tc := range map[string]struct{ reason, image, tag, want string }{
		"short":      {"names get the prefix", "fn:v1.0.0", "", repository + ":v1.0.0"},
		"constraint": {"the highest tag in the store counts", "fn", ">=1", repository + ":v1.2.0"},
		"digest":     {"an image pulled by its tag may be pinned", repository + "@" + known.GetDigest(), "", repository},
		"not pulled": {"it is in the registry alone", "fn:v2.0.0", "", ""},
		"no tag":     {"no tag in the store fits", "fn", ">=2", ""},
		"other":      {"no tag is known", registry.Host + "/other", ">=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := local.Pull(t.Context(), tc.image, tc.tag, nil)
			if tc.want != "" && (err != nil || got != tc.want) {
				t.Errorf("got %q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
			const missing = "is not in the image store"
			if tc.want == "" && (fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), missing)) {
				t.Errorf("got %v, want an error: %s", err, tc.reason)
			}
		})
	}
	if n := registry.Count("") - calls; n != 0 {
		t.Errorf("%d calls of the registry, want none offline", n)
	}
}

// TestTagAndDigest pulls an image by the name of a tag with the digest of another image, and uses both offline.
func TestTagAndDigest(t *testing.T) {
	registry := testregistry.Start(t, nil)
	old := registry.Push(t, "fn:old", v1.Config{Entrypoint: []string{"/old"}})
	registry.Push(t, "fn:v1", v1.Config{Entrypoint: []string{"/current"}})
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{registry.Host}
	r, _ := start(t, cfg)
	digest, err := old.Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag := registry.Host + "/fn:v1"
	pinned := tag + "@" + digest.String()
	for order, constraints := range map[string][]string{ // a constraint replaces the digest
		"tag last": {"", "v1"}, "digest last": {"v1", ""},
	} {
		dir := t.TempDir()
		online := openLocal(t, dir, "", r)
		for _, constraint := range constraints {
			if got, err := online.Pull(t.Context(), pinned, constraint, nil); got != tag || err != nil {
				t.Fatalf("%s: pulled %q, %v, want %q", order, got, err, tag)
			}
		}
		local := openLocal(t, dir, "", nil)
		for image, command := range map[string]string{tag: "/current", pinned: "/old"} {
			got, err := local.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image})
			if err != nil || got.GetReference() != tag || !slices.Equal(got.GetCommand(), []string{command}) {
				t.Errorf("%s: %s is %v, %v, want %s", order, image, got, err, command)
			}
		}
	}
}
