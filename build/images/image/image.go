// SPDX-License-Identifier: Apache-2.0

// Package image builds container images without a container engine, and pushes them to registries.
package image

import (
	"context"
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

// Spec describes an image to build.
type Spec struct {
	// Name is the image's repository and tag, without a registry.
	Name       string
	Files      []File
	Entrypoint []string
	Cmd        []string
	// User is the numeric ID of the user that runs the container. A user name would require /etc/passwd in the image.
	User string
}

// Builder builds images and caches their layers in the directory Dir. The same Spec and the same file contents
// always give the same digest.
type Builder struct {
	Dir string
}

// Build builds the image. It reuses cached layers whose files have not changed.
func (b Builder) Build(spec Spec) (v1.Image, error) {
	if spec.Files == nil {
		return configure(empty.Image, spec)
	}
	layer, err := b.layer(spec.Files)
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", spec.Name, err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, MediaType: types.DockerLayer})
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", spec.Name, err)
	}
	return configure(image, spec)
}

// BuildAll builds the images concurrently. It returns the images in the order of the specs.
func (b Builder) BuildAll(ctx context.Context, specs []Spec) ([]v1.Image, error) {
	images := make([]v1.Image, len(specs))
	builds, ctx := errgroup.WithContext(ctx)
	builds.SetLimit(runtime.NumCPU())
	for i, spec := range specs {
		builds.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var err error
			images[i], err = b.Build(spec)
			return err
		})
	}
	return images, builds.Wait()
}

func configure(image v1.Image, spec Spec) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configure image %s: %w", spec.Name, err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Cmd,
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		User:       spec.User,
		WorkingDir: "/",
	}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("configure image %s: %w", spec.Name, err)
	}
	return image, nil
}
