// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"regexp"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/test/bed"
)

// Registry returns a registry of the test bed by its name: open, private or secure.
func (s *Suite) Registry(t testing.TB, name string) bed.Registry {
	t.Helper()
	if s.Bed == nil {
		t.Fatal("these tests need a cluster of the test bed: run them with `make e2e` and without KUBECONFIG")
	}
	found, err := s.Bed.Registry(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Version is a version of the programs to deploy. Its value is a prefix of repository names in the open registry.
type Version string

const (
	// Current contains the images that are built from this checkout.
	Current Version = "programs"
	// Previous contains the images of an earlier commit, for tests of upgrades.
	Previous Version = "previous"
	// Porch contains the images of Porch's own programs, such as its server.
	Porch Version = "porch"
)

// Program returns the image name of a program in the test bed's open registry. The name contains a digest instead of a
// tag. This is because a node that has pulled a tag would not pull a newer image with the same tag.
func (s *Suite) Program(t testing.TB, version Version, program string) string {
	t.Helper()
	repository, err := name.NewRepository(s.Registry(t, "open").Host+"/"+string(version)+"/"+program, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	latest, err := remote.Head(repository.Tag("latest"), remote.WithContext(Context(t)))
	if err != nil {
		t.Fatal(err)
	}
	return repository.Digest(latest.Digest.String()).String()
}

// published matches the names of the project's published images.
var published = regexp.MustCompile(`ghcr\.io/krm-function-runner/([a-z-]+):latest`)

// OwnImages replaces the project's published images in manifests by the same images in the test bed's registry.
func (s *Suite) OwnImages(t testing.TB, version Version, content string) string {
	t.Helper()
	return published.ReplaceAllStringFunc(content, func(image string) string {
		return s.Program(t, version, published.FindStringSubmatch(image)[1])
	})
}
