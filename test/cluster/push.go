// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/imagecache"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// latest is the tag of the images that tests and manifests use.
const latest = "latest"

// pusher pushes images of this repository's programs to a registry. It builds them with ko and caches them locally.
type pusher struct {
	*options
	log      io.Writer
	registry image.Registry
	ko       release.Ko
	kept     imagecache.Cache
}

// pushProgram pushes the image of a program. It always builds the program, which is fast if nothing changed. It
// runs ko only if neither the registry nor the cache contains an image with the program's hash.
func (to pusher) pushProgram(ctx context.Context, p release.Program, repository string) error {
	base, err := to.builder().Build(p.Base())
	if err != nil {
		return err
	}
	key, err := to.imageKey(ctx, p, base)
	if err != nil {
		return err
	}
	if present, err := to.registry.Same(ctx, repository, key, latest); err != nil || present {
		return err
	}
	// Push the base image even if ko does not run, because skaffold also uses the base image.
	if _, err := to.registry.Push(ctx, p.Base().Name, base); err != nil {
		return err
	}
	return to.cacheImage(ctx, p, repository, key)
}

// cacheImage pushes the cached image. If the image is not in the cache, it builds, pushes and caches the image.
func (to pusher) cacheImage(ctx context.Context, p release.Program, repository, key string) error {
	unlock, err := to.kept.Lock(repository)
	if err != nil {
		return err
	}
	defer unlock()
	kept, err := to.kept.Get(repository, key)
	if err != nil {
		return err
	}
	if kept != nil {
		return to.tagImage(ctx, kept, repository, key, latest)
	}
	made, err := to.buildImage(ctx, p, repository, key)
	if err != nil {
		return err
	}
	return to.kept.Keep(repository, key, made)
}

func (to pusher) tagImage(ctx context.Context, pushed v1.Image, repository string, tags ...string) error {
	for _, tag := range tags {
		if _, err := to.registry.Push(ctx, repository+":"+tag, pushed); err != nil {
			return err
		}
	}
	return nil
}

// buildImage runs ko, which builds the image and pushes it to the registry. It returns the pushed image.
func (to pusher) buildImage(ctx context.Context, p release.Program, repository, key string) (v1.Image, error) {
	fmt.Fprintf(to.log, "building the image %s with ko\n", repository)
	host := layout.Open.Host() + "/"
	target := release.Target{Repository: host + repository, Base: host + p.Base().Name, Tags: []string{latest, key}}
	if err := to.ko.Build(ctx, p, target); err != nil {
		return nil, err
	}
	return to.registry.Pull(ctx, repository+":"+key)
}

// imageKey returns a hash of all inputs of an image: the program, its data files, the base image and ko's version. The
// hash is a tag of the image, and the image's key in the cache.
func (to pusher) imageKey(ctx context.Context, p release.Program, base v1.Image) (string, error) {
	built, err := to.imageSource().Program(ctx, p.Module, p.Package)
	if err != nil {
		return "", err
	}
	data, err := p.DataFiles(to.root)
	if err != nil {
		return "", err
	}
	digest, err := base.Digest()
	if err != nil {
		return "", fmt.Errorf("read a base image: %w", err)
	}
	return image.Key(append(data, image.File{Source: built}, image.File{Content: digest.String()},
		image.File{Content: component.Ko().Key()}))
}
