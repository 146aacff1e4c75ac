// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"github.com/krm-function-runner/function-runner/build/images/bundle"
	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// made is a bundle of one image for two platforms.
type made struct {
	dir    string
	digest string
	key    *ecdsa.PrivateKey
}

// parts are what a bundle is made of; tests leave some out, or change them.
type parts struct {
	signed, attested v1.Image
	name             string // of the image
	// more are further images, by name.
	more  map[string]v1.Image
	sboms map[string]v1.Image // by the digest of what they describe
}

// assemble makes a bundle with changed parts.
func assemble(t *testing.T, change func(*parts)) made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	index, err2 := random.Index(64, 1, 2)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	digest, manifest := hash(t, index), must(index.IndexManifest())(t)
	p := parts{sboms: map[string]v1.Image{}, name: "gateway:v1"}
	build := provenance.Build{Version: "v1", Platforms: []string{"linux/amd64", "linux/arm64"}, Revision: "c0ffee"}
	for _, platform := range manifest.Manifests {
		of := platform.Digest.String()
		p.sboms[of] = sbom(t, of)
		build.SBOMs = append(build.SBOMs, hash(t, p.sboms[of]))
	}
	image := must(name.NewDigest("registry.example/fnr/gateway@" + digest))(t)
	p.signed = must(signature.Add(signature.Empty(), image, key))(t)
	p.attested = must(provenance.Attest(image, build, key))(t)
	change(&p)

	dir := filepath.Join(t.TempDir(), "images")
	to := must(bundle.Create(dir))(t)
	add := func(tag string, image v1.Image) {
		if image == nil {
			return
		}
		if err := to.AddImage("gateway:"+tag, image); err != nil {
			t.Fatal(err)
		}
	}
	add(signature.Tag(digest, "sig"), p.signed)
	add(signature.Tag(digest, "att"), p.attested)
	for of, list := range p.sboms {
		add(signature.Tag(of, "sbom"), list)
	}
	if err := to.AddIndex(p.name, index); err != nil {
		t.Fatal(err)
	}
	for name, image := range p.more {
		if err := to.AddImage(name, image); err != nil {
			t.Fatal(err)
		}
	}
	return made{dir, digest, key}
}

// sbom returns a list of modules like ko's.
func sbom(t *testing.T, of string) v1.Image {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"spdxVersion": "SPDX-2.3", "packages": []map[string]string{{"name": of}, {"name": "example.com/module"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return must(mutate.AppendLayers(signature.Empty(), static.NewLayer(content, "text/spdx+json")))(t)
}

func TestVerify(t *testing.T) {
	tests := map[string]struct {
		change func(*testing.T, *parts)
		want   string // in the error, if any
		reason string
	}{
		"whole":        {func(*testing.T, *parts) {}, "", "all is there"},
		"no signature": {func(_ *testing.T, p *parts) { p.signed = nil }, "no signature", "its origin is unknown"},
		"unsigned": {
			func(_ *testing.T, p *parts) { p.signed = signature.Empty() }, "no signature by the key",
			"the list is empty",
		},
		"unknown": {func(_ *testing.T, p *parts) { p.attested = nil }, "no provenance", "its sources are unknown"},
		"no SBOM": {func(_ *testing.T, p *parts) { clear(p.sboms) }, "no SBOM", "its modules are unknown"},
		"other SBOM": {func(t *testing.T, p *parts) {
			for of := range p.sboms {
				p.sboms[of] = sbom(t, "sha256:other")
			}
		}, "not in the provenance", "another list took its place"},
		"another version": {
			func(_ *testing.T, p *parts) { p.name = "gateway:v2" }, "by its provenance it is gateway:v1",
			"an old image is offered as a new one",
		},
		"another program": {
			func(_ *testing.T, p *parts) { p.name = "wrapper-server:v1" }, "it has no signature",
			"a signed image takes the place of another",
		},
		"one more": {
			func(t *testing.T, p *parts) { p.more = map[string]v1.Image{"gateway:v2": sbom(t, "")} },
			"gateway:v2 belongs to none of them", "it would be pushed without a signature",
		},
		"a name twice": {
			func(t *testing.T, p *parts) { p.more = map[string]v1.Image{"gateway:v1": sbom(t, "")} },
			"two images have this name", "the second would replace the first where they are pushed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := assemble(t, func(p *parts) { tc.change(t, p) })
			verified, err := must(bundle.Open(b.dir))(t).Verify(&b.key.PublicKey)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Verify = %v, want an error with %q: %s", err, tc.want, tc.reason)
				}
				return
			}
			want := bundle.Verified{Name: "gateway:v1", Digest: b.digest, Revision: "c0ffee"}
			if err != nil || len(verified) != 1 || verified[0] != want {
				t.Errorf("Verify = %v, %v, want %v", verified, err, want)
			}
		})
	}
}

// TestVerifyReadsEveryFile changes each file of a bundle in turn: none is left out.
func TestVerifyReadsEveryFile(t *testing.T) {
	b := assemble(t, func(*parts) {})
	files, err := filepath.Glob(filepath.Join(b.dir, "blobs/sha256/*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("the bundle has %d files (%v)", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(content)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := must(bundle.Open(b.dir))(t).Verify(&b.key.PublicKey); err == nil {
			t.Errorf("a changed file is not noticed: %s", content)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerifyNeedsTheKeyOfTheRelease(t *testing.T) {
	b, other := assemble(t, func(*parts) {}), assemble(t, func(*parts) {})
	if _, err := must(bundle.Open(b.dir))(t).Verify(&other.key.PublicKey); err == nil {
		t.Error("another key verifies it")
	}
	if _, err := bundle.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "images_VERSION.tar") {
		t.Errorf("a directory without images: %v", err)
	}
}

// TestPushKeepsDigests copies a bundle to a registry, where everything has the names that cosign looks for.
func TestPushKeepsDigests(t *testing.T) {
	b := assemble(t, func(*parts) {})
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/fnr"
	var out strings.Builder
	if err := must(bundle.Open(b.dir))(t).Push(t.Context(), repository, &out); err != nil {
		t.Fatal(err)
	}
	if want := repository + "/gateway@" + b.digest + "\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", &out, want)
	}
	there := must(remote.Index(must(name.ParseReference(repository + "/gateway:v1"))(t)))(t)
	if got := hash(t, there); got != b.digest {
		t.Errorf("the digest is %s, want %s", got, b.digest)
	}
	for _, platform := range must(there.IndexManifest())(t).Manifests {
		tag := repository + "/gateway:" + signature.Tag(platform.Digest.String(), "sbom")
		must(remote.Image(must(name.ParseReference(tag))(t)))(t)
	}
	for _, what := range []string{"sig", "att"} {
		must(remote.Image(must(name.ParseReference(repository + "/gateway:" + signature.Tag(b.digest, what)))(t)))(t)
	}
}

// hash returns a digest.
func hash(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	return must(of.Digest())(t).String()
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
