// SPDX-License-Identifier: Apache-2.0

// Package imagecopy copies images between registries of the test bed.
package imagecopy

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push pushes a copy of an image under another name. It sets a label of the copy, which changes the digest, and
// returns the new digest.
func Push(t testing.TB, of, as, label string) string {
	t.Helper()
	original, err := remote.Image(reference(t, of), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
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
	write(t, as, image)
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func write(t testing.TB, as string, image v1.Image) {
	t.Helper()
	if err := remote.Write(reference(t, as), image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// reference parses the name of an image in a registry without TLS.
func reference(t testing.TB, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
