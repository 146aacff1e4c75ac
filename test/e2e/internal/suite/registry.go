// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"regexp"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/test/bed"
)

// Registry returns the test bed's registry with the given name: open, private or secure.
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

// Version selects the images that a test deploys. It is a repository prefix in the registry without credentials.
type Version string

const (
	// Current selects images built from the current sources.
	Current Version = "programs"
	// Previous selects images built from an earlier commit, for tests of upgrades.
	Previous Version = "previous"
	// Porch selects images with the programs of a real Porch, such as its server.
	Porch Version = "porch"
)

// Program returns the name of a program's image in the test bed's registry without credentials. The name contains a
// digest because a node does not pull a tag again that it has pulled before.
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

// published matches the names of the project's images in its manifests.
var published = regexp.MustCompile(`ghcr\.io/krm-function-runner/([a-z-]+):latest`)

// OwnImages replaces the names of published images in manifests by the names of the test bed's images.
func (s *Suite) OwnImages(t testing.TB, version Version, content string) string {
	t.Helper()
	return published.ReplaceAllStringFunc(content, func(image string) string {
		return s.Program(t, version, published.FindStringSubmatch(image)[1])
	})
}
