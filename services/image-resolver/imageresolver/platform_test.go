// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// forPlatform returns an image whose configuration names an architecture.
func forPlatform(t *testing.T, architecture string) v1.Image {
	t.Helper()
	image := testregistry.Image(t, function)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// TestPlatformsOfConfigurations has images for other platforms, alone and as members of an index that names none.
func TestPlatformsOfConfigurations(t *testing.T) {
	s := open()(t)
	r, _ := start(t, s.config)
	for architecture, says := range map[string]string{
		"amd64": "", "x86_64": "", "arm64": "the image is for linux/arm64, this machine is linux/amd64",
	} {
		s.registry.Tag(t, architecture+":v1", forPlatform(t, architecture))
		got, err := resolve(t, r, s.registry.Host+"/"+architecture+":v1")
		switch {
		case says == "" && (err != nil || got.GetPlatform().GetArchitecture() != "amd64"):
			t.Errorf("%s: %v, %v, want it for amd64", architecture, got.GetPlatform(), err)
		case says != "" && fault.Of(err) != fault.Precondition:
			t.Errorf("%s: %v, want Precondition", architecture, err)
		case says != "":
			expectText(t, err, says)
		}
	}
	attestation := mutate.IndexAddendum{Add: forPlatform(t, "unknown"), Descriptor: v1.Descriptor{
		Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"},
	}}
	wanted := forPlatform(t, "x86_64")
	index := mutate.AppendManifests(empty.Index, attestation, mutate.IndexAddendum{Add: forPlatform(t, "arm64")},
		mutate.IndexAddendum{Add: wanted})
	s.registry.PushIndex(t, "index:v1", index)
	digest, err := wanted.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := resolve(t, r, s.registry.Host+"/index:v1"); err != nil || got.GetDigest() != digest.String() {
		t.Errorf("index: %v, %v, want %s, the member that is for amd64", got, err, digest)
	}
}
