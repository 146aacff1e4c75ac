// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/krm-function-runner/function-runner/build/images/bundle"
	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// standIn does what ko does, without a program: it pushes the base as the image, and a list of modules.
func standIn(t *testing.T, repository, dir string, args []string) {
	t.Helper()
	to := repository + "/" + path.Base(dir)
	var platform, tag string
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--platform="); ok {
			platform = value
		}
		if value, ok := strings.CutPrefix(arg, "--tags="); ok {
			tag = value
		}
	}
	base, err := remote.Image(reference(t, to+":base"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := base.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := file.OS + "/" + file.Architecture; got != platform {
		t.Errorf("the base of %s is for %s, want %s", to, got, platform)
	}
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	sbom, err := mutate.AppendLayers(signature.Empty(), static.NewLayer(
		[]byte(`{"spdxVersion": "SPDX-2.3", "packages": [{"name": "`+digest.String()+`"}]}`), "text/spdx+json"))
	if err != nil {
		t.Fatal(err)
	}
	for tag, image := range map[string]v1.Image{tag: base, signature.Tag(digest.String(), "sbom"): sbom} {
		if err := remote.Write(reference(t, to+":"+tag), image); err != nil {
			t.Fatal(err)
		}
	}
}

func reference(t *testing.T, image string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBundleHasEveryPlatform builds a bundle with a stand-in for ko: each program is an OCI index of all
// platforms, with the functions for each, and signed.
func TestBundleHasEveryPlatform(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(probe, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	functions := func(arch string) []image.File {
		return []image.File{{Path: release.DataDir + "/functions/f", Mode: 0o755, Content: "for " + arch}}
	}
	dir := t.TempDir()
	images, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	digests, err := release.Bundler{
		Publisher: release.Publisher{
			Repository: repository, Tag: "v1", Layers: t.TempDir(), Out: io.Discard,
			Ko: release.Ko{Root: root, Command: func(dir string, args ...string) []string {
				standIn(t, repository, dir, args)
				return []string{"true"}
			}},
		},
		Build: provenance.Build{Version: "v1", Platforms: []string{"linux/amd64", "linux/arm64"}},
		Key:   key, Functions: map[string][]image.File{"amd64": functions("amd64"), "arm64": functions("arm64")},
		Probe: map[string]string{"amd64": probe, "arm64": probe},
	}.Bundle(t.Context(), images)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := images.Verify(&key.PublicKey)
	if err != nil || len(verified) != len(release.Programs()) {
		t.Fatalf("verified are %v (%v), want all programs", verified, err)
	}
	for _, v := range verified {
		program, _, _ := strings.Cut(v.Name, ":")
		if digests[program] != v.Digest {
			t.Errorf("the digest of %s is %s, want %s", program, digests[program], v.Digest)
		}
	}
	// What is pushed is what a node chooses from.
	if err := images.Push(t.Context(), repository+"/copy", io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, program := range release.Programs() {
		index, err := remote.Index(reference(t, repository+"/copy/"+program.Name+":v1"))
		if err != nil {
			t.Fatal(err)
		}
		checkPlatforms(t, program, index)
	}
}

// checkPlatforms checks the manifests of an index.
func checkPlatforms(t *testing.T, program release.Program, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	layers := map[string]bool{}
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		content, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		layers[content.Layers[0].Digest.String()] = true
		if content.MediaType != types.OCIManifestSchema1 || content.Layers[0].MediaType != types.OCILayer {
			t.Errorf("%s is a %s of %s", program.Name, content.MediaType, content.Layers[0].MediaType)
		}
	}
	slices.Sort(platforms)
	if manifest.MediaType != types.OCIImageIndex || !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("%s is a %s for %v", program.Name, manifest.MediaType, platforms)
	}
	if program.Data != (len(layers) == 2) {
		t.Errorf("%s has %d first layers: functions differ between platforms, links do not", program.Name, len(layers))
	}
}
