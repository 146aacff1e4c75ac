// SPDX-License-Identifier: Apache-2.0

// Package imagecopy copies images in the test bed's registries, to create images with new names and digests.
package imagecopy

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push copies an image and pushes the copy under a new name. If change is not nil, Push calls it to modify the copy's
// image configuration. Push uses the options when it accesses the copy's registry.
func Push(t testing.TB, of, as string, change func(*v1.Config), options ...remote.Option) {
	t.Helper()
	image, err := remote.Image(Reference(t, of), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		file, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config := file.Config.DeepCopy()
		change(config)
		if image, err = mutate.Config(image, *config); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Write(Reference(t, as), image, append(options, remote.WithContext(t.Context()))...); err != nil {
		t.Fatal(err)
	}
}

// Label returns a function for [Push]. The function sets a label in the copy, so that the copy's digest is different.
func Label(label string) func(*v1.Config) {
	return func(config *v1.Config) { config.Labels = map[string]string{"e2e": label} }
}

// Reference parses the name of an image in a registry without TLS.
func Reference(t testing.TB, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
