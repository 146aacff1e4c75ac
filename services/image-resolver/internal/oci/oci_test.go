// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

const (
	indexType  = "application/vnd.oci.image.index.v1+json"
	imageType  = "application/vnd.oci.image.manifest.v1+json"
	someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// must returns v, for making what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestImage(t *testing.T) {
	image := must(mutate.Config(must(random.Image(100, 2)), v1.Config{
		Entrypoint: []string{"/bin/fn"}, Cmd: []string{"--quiet"}, Env: []string{"A=b"},
		WorkingDir: "/work", User: "65532",
	}))
	m := must(oci.ParseManifest("", must(image.RawManifest())))
	got := must(oci.ParseConfig(m, must(image.RawConfigFile())))
	if want := []string{"/bin/fn", "--quiet"}; !slices.Equal(got.Command(), want) {
		t.Errorf("command %q, want %q: Entrypoint, then Cmd", got.Command(), want)
	}
	if want := must(image.Digest()).String(); got.Digest != want || got.TopDigest() != want {
		t.Errorf("digest %s, want %s", got.Digest, want)
	}
	var size int64
	for _, l := range must(image.Layers()) {
		size += must(l.Size())
	}
	if m.LayerBytes != size {
		t.Errorf("layers of %d bytes, want %d", m.LayerBytes, size)
	}
	if got.WorkingDir != "/work" || got.User != "65532" || !slices.Equal(got.Env, []string{"A=b"}) {
		t.Errorf("got %+v, want all of the configuration", got)
	}
}

func TestCommand(t *testing.T) {
	tests := map[string]struct {
		reason string
		config string
		want   string
	}{
		"entrypoint only": {"the usual function", `{"config":{"Entrypoint":["/fn"]}}`, "/fn"},
		"cmd only":        {"runs as well", `{"config":{"Cmd":["sh","-c","fn"]}}`, "sh -c fn"},
		"both":            {"Cmd is Entrypoint's arguments", `{"config":{"Entrypoint":["/fn"],"Cmd":["-v"]}}`, "/fn -v"},
		"neither":         {"nothing to run", `{"config":{}}`, ""},
		"garbage":         {"no JSON", `garbage`, ""},
		"other shape":     {"JSON of another shape", `{"config":{"Entrypoint":"/fn"}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			image, err := oci.ParseConfig(&oci.Manifest{Config: someDigest}, []byte(tc.config))
			if tc.want == "" {
				if fault.Of(err) != fault.Precondition {
					t.Errorf("%v, want Precondition: %s", err, tc.reason)
				}
				return
			}
			if got := strings.Join(must(image, err).Command(), " "); got != tc.want {
				t.Errorf("command %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestZeroBytesAreRejected has texts with a zero byte: where such a byte ends each text, one would be two.
func TestZeroBytesAreRejected(t *testing.T) {
	const zero = `x\u0000--bind`
	for _, config := range []string{
		`"Entrypoint":["` + zero + `"]`, `"Entrypoint":["/fn","` + zero + `"]`, `"Cmd":["` + zero + `"]`,
		`"Cmd":["fn"],"Env":["A=` + zero + `"]`, `"Cmd":["fn"],"WorkingDir":"/` + zero + `"`,
		`"Cmd":["fn"],"User":"` + zero + `"`,
	} {
		_, err := oci.ParseConfig(&oci.Manifest{Config: someDigest}, []byte(`{"config":{`+config+`}}`))
		if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "has a zero byte") {
			t.Errorf("%s: error %v, want a rejection that says why", config, err)
		}
	}
}

func TestSelect(t *testing.T) {
	child := func(digest string, platform *v1.Platform) v1.Descriptor {
		hash := must(v1.NewHash("sha256:" + strings.Repeat(digest, 64)))
		return v1.Descriptor{MediaType: imageType, Digest: hash, Platform: platform}
	}
	amd := child("a", &v1.Platform{OS: "linux", Architecture: "amd64"})
	armV6 := child("6", &v1.Platform{OS: "linux", Architecture: "arm", Variant: "v6"})
	armV7 := child("7", &v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"})
	unsaid := child("0", nil)
	attestation := child("f", &v1.Platform{OS: "unknown", Architecture: "unknown"})
	amdV3 := child("3", &v1.Platform{OS: "linux", Architecture: "amd64", Variant: "v3"})
	alias := child("b", &v1.Platform{OS: "Linux", Architecture: "x86_64"})
	aarch64 := child("c", &v1.Platform{OS: "linux", Architecture: "aarch64", Variant: "8"})
	armhf := child("d", &v1.Platform{OS: "linux", Architecture: "armhf"})
	unnamed := child("e", nil)
	unnamed.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	tests := map[string]struct {
		reason   string
		members  []v1.Descriptor
		platform string
		want     string // the digit of the digest, or a part of the error
	}{
		"exact":       {"the platform asked for", []v1.Descriptor{armV6, amd}, "linux/amd64", "a"},
		"variant":     {"the variant asked for", []v1.Descriptor{armV6, armV7}, "linux/arm/v7", "7"},
		"any variant": {"the first, if none is asked for", []v1.Descriptor{armV6, armV7}, "linux/arm", "6"},
		"preferred":   {"the first of several platforms", []v1.Descriptor{amd, armV7}, "linux/arm,linux/amd64", "7"},
		"space":       {"users write one after a comma", []v1.Descriptor{unsaid, armV7}, "linux/amd64, linux/arm", "7"},
		"second":      {"the one that there is", []v1.Descriptor{unsaid, armV7}, "linux/amd64,linux/arm", "7"},
		"unsaid":      {"an image that says nothing may be for all", []v1.Descriptor{unsaid, armV6}, "linux/amd64", "0"},
		"said first":  {"but one that says so is better", []v1.Descriptor{unsaid, amd}, "linux/amd64", "a"},
		"missing": {
			"the error says what there is",
			[]v1.Descriptor{amd, armV6, attestation},
			"linux/s390x",
			"only for linux/amd64, linux/arm/v6: push",
		},
		"alias":           {"other tools spell architectures differently", []v1.Descriptor{armV6, alias}, "linux/amd64", "b"},
		"alias asked for": {"so do users", []v1.Descriptor{armV6, amd}, "linux/x86_64", "a"},
		"aarch64":         {"arm64, of which v8 is the base", []v1.Descriptor{amd, aarch64}, "linux/arm64", "c"},
		"aarch64 v8":      {"the base variant by its name", []v1.Descriptor{amd, aarch64}, "linux/arm64/v8", "c"},
		"armhf":           {"32 bits with a floating point unit", []v1.Descriptor{armV6, armhf}, "linux/arm/v7", "d"},
		"lowest variant":  {"v1 runs on every machine, v3 on some", []v1.Descriptor{amdV3, amd}, "linux/amd64", "a"},
		"annotated":       {"the annotation says what it is", []v1.Descriptor{unnamed, amd}, "linux/amd64", "a"},
		"attestation":     {"an attestation is no image", []v1.Descriptor{unnamed}, "linux/amd64", "lists none at all"},
		"no image":        {"attestations are no images", []v1.Descriptor{attestation}, "linux/amd64", "lists none at all"},
		"no member":       {"an empty index", nil, "linux/amd64", "lists none at all"},
		"other variant":   {"no variant fits", []v1.Descriptor{armV6}, "linux/arm/v7", "only for linux/arm/v6"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := must(json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: indexType, Manifests: tc.members}))
			m := must(oci.ParseManifest(indexType, raw))
			chosen, err := m.Select(must(oci.ParsePlatforms(tc.platform)))
			var got string
			if len(chosen) > 0 {
				got = chosen[0].Digest
			}
			if len(tc.want) > 1 {
				if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want Precondition with %q: %s", err, tc.want, tc.reason)
				}
				return
			}
			if err != nil || got != "sha256:"+strings.Repeat(tc.want, 64) {
				t.Errorf("chose %s, %v, want %s…: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestParseManifestRejects(t *testing.T) {
	tests := map[string]struct {
		reason, mediaType, raw, want string
	}{
		"garbage":  {"no JSON", imageType, "<html>", "not valid JSON"},
		"schema 1": {"it is no longer in use", "application/vnd.docker.distribution.manifest.v1+prettyjws", "{}", "obsolete"},
		"chart": {
			"artifacts are no images", imageType,
			`{"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"` + someDigest + `"}}`,
			"no container image",
		},
		"no config":   {"nothing to look at", imageType, `{}`, "names no configuration"},
		"bad digests": {"not even hexadecimal", imageType, `{"config":{"digest":"sha256:nonsense"}}`, "not valid"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := oci.ParseManifest(tc.mediaType, []byte(tc.raw))
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want Precondition with %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// TestVolumesOverTheWrapperServerAreRejected has volumes at, above, below and beside its directory.
func TestVolumesOverTheWrapperServerAreRejected(t *testing.T) {
	for volume, rejected := range map[string]bool{
		"/": true, "/wrapper-server-tools": true, "/wrapper-server-tools/": true, "wrapper-server-tools": true,
		"/data/../wrapper-server-tools": true, "/wrapper-server-tools/ko-app": true,
		"/data": false, "/tmp": false, "/wrapper-server-tools-2": false, "/a/wrapper-server-tools": false,
	} {
		config := must(json.Marshal(map[string]any{"config": map[string]any{
			"Cmd": []string{"fn"}, "Volumes": map[string]any{"/other": struct{}{}, volume: struct{}{}},
		}}))
		_, err := oci.ParseConfig(&oci.Manifest{Config: someDigest}, config)
		if (err != nil) != rejected || (err != nil && (fault.Of(err) != fault.Precondition ||
			!strings.Contains(err.Error(), "hides the wrapper server"))) {
			t.Errorf("%q: %v, want it rejected: %t", volume, err, rejected)
		}
	}
	escaped := `{"config":{"Cmd":["fn"],"Volumes":{"/\u0077rapper-server-tools":{}}}}`
	if _, err := oci.ParseConfig(&oci.Manifest{Config: someDigest}, []byte(escaped)); err == nil {
		t.Error("a volume that is written with an escape is accepted")
	}
}

// TestPlatformsAreNormalized has other spellings in configurations: nodes are labelled with Go's.
func TestPlatformsAreNormalized(t *testing.T) {
	for config, want := range map[string]string{
		`"os":"linux","architecture":"x86_64"`: "linux/amd64", `"os":"Linux","architecture":"AMD64"`: "linux/amd64",
		`"os":"linux","architecture":"arm64","variant":"v8"`: "linux/arm64",
		`"os":"linux","architecture":"aarch64"`:              "linux/arm64",
		`"os":"linux","architecture":"armhf"`:                "linux/arm/v7",
		`"os":"linux","architecture":"arm","variant":"6"`:    "linux/arm/v6",
		`"os":"linux","architecture":"i686"`:                 "linux/386",
		`"os":"linux","architecture":"amd64","variant":"v3"`: "linux/amd64/v3",
	} {
		image := must(oci.ParseConfig(&oci.Manifest{Config: someDigest}, []byte(`{`+config+`,"config":{"Cmd":["fn"]}}`)))
		if got := image.Platform.String(); got != want {
			t.Errorf("%s: platform %s, want %s", config, got, want)
		}
	}
}

func TestParsePlatform(t *testing.T) {
	for _, s := range []string{"linux/amd64", "linux/arm/v7"} {
		if got, err := oci.ParsePlatform(s); err != nil || got.String() != s {
			t.Errorf("platform %q is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "linux", "linux/", "/amd64", "a/b/c/d"} {
		if _, err := oci.ParsePlatform(s); err == nil {
			t.Errorf("platform %q is accepted", s)
		}
	}
}

// FuzzInterpret reads what a registry sent: nothing makes it panic, every error is
// Precondition, and an image always has something to run.
func FuzzInterpret(f *testing.F) {
	image := must(random.Image(10, 1))
	index := mutate.AppendManifests(
		empty.Index,
		mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
		},
	)
	manifest, config := must(image.RawManifest()), must(image.RawConfigFile())
	f.Add(imageType, manifest, config)
	f.Add(indexType, must(index.RawManifest()), config)
	f.Add("", manifest, []byte(`{"config":{"Entrypoint":["/fn"],"Cmd":["a"],"Env":["A=b"],"Labels":{"a":"b"}}}`))
	f.Add("text/html", []byte("<html>"), []byte("null"))
	f.Fuzz(func(t *testing.T, mediaType string, manifest, config []byte) {
		m, err := oci.ParseManifest(mediaType, manifest)
		if err != nil {
			expectPrecondition(t, err)
			return
		}
		if m.IsIndex() {
			chosen, err := m.Select(oci.Platforms{{OS: "linux", Architecture: "amd64"}})
			if err != nil {
				expectPrecondition(t, err)
			} else if len(chosen) == 0 || !slices.Contains(m.Children, chosen[0]) {
				t.Errorf("chose %v, which are no members", chosen)
			}
			return
		}
		parsed, err := oci.ParseConfig(m, config)
		if err != nil {
			expectPrecondition(t, err)
			return
		}
		if len(parsed.Command()) == 0 || m.LayerBytes < 0 || parsed.MemoryBytes() <= 0 {
			t.Errorf("an image of no use: %+v", parsed)
		}
	})
}

func expectPrecondition(t *testing.T, err error) {
	t.Helper()
	if fault.Of(err) != fault.Precondition {
		t.Errorf("error %v is of class %v, want Precondition", err, fault.Of(err))
	}
}
