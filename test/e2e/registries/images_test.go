// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// reference returns an image of a registry without TLS.
func reference(t *testing.T, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// newCopies pushes copies of an image that no node has pulled to the private registry, and returns
// their repository. Each copy has one of the tags.
func newCopies(t *testing.T, of string, tags ...string) (repository string) {
	t.Helper()
	original, err := remote.Image(reference(t, of), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	private := s.Registry(t, "private")
	repository = "e2e/" + strings.ToLower(rand.Text())
	login := remote.WithAuth(&authn.Basic{Username: private.Username, Password: private.Password})
	for _, tag := range tags {
		copied := reference(t, private.Host+"/"+repository+":"+tag)
		if err := remote.Write(copied, labelled(t, original, repository+":"+tag), login,
			remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return repository
}

// labelled returns the image with a label, which changes its digest.
func labelled(t *testing.T, original v1.Image, label string) v1.Image {
	t.Helper()
	config, err := original.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"e2e": label}
	image, err := mutate.ConfigFile(original, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
