// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/registry"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/registrycache"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// supplier pushes the same images to all registries of a cluster. For new registries, it copies the images from the
// cache if possible.
type supplier struct {
	*options
	fresh bool
	// key is the cache key of the registries' content, a hash of all images that were pushed.
	key string
	// dirs are the directories in which the registries store images.
	dirs       []string
	registries []image.Registry
}

// open waits until all registries of the cluster accept connections.
func (to *supplier) open(ctx context.Context, l layout.Layout, running state.State) error {
	for _, described := range describeCluster(l, running).Registries {
		registry, err := registry.Open(ctx, described, space.Dialer{PID: running.Init.PID}.DialContext)
		if err != nil {
			return err
		}
		to.registries = append(to.registries, registry)
		to.dirs = append(to.dirs, l.Storage(described.Name))
	}
	return nil
}

// supplyImages adds images to all registries. It also caches the registries' files in a subdirectory of the cache. The
// argument what is the name of this subdirectory, such as "tools".
func (to *supplier) supplyImages(ctx context.Context, what string, specs []image.Spec) error {
	images, err := to.builder().BuildAll(ctx, specs)
	if err != nil {
		return err
	}
	if to.key, err = registryKey(to.key, specs, images); err != nil {
		return err
	}
	kept := registrycache.Cache{Dir: filepath.Join(to.registryCache(), what)}
	if to.fresh {
		if filled, err := to.fillFromCache(kept); err != nil || filled {
			return err
		}
	}
	pushes, ctx := errgroup.WithContext(ctx)
	for _, registry := range to.registries {
		pushes.Go(func() error { return pushTo(ctx, registry, specs, images) })
	}
	if err := pushes.Wait(); err != nil || !to.fresh {
		return err
	}
	return kept.Keep(to.key, to.dirs[0])
}

// fillFromCache copies cached images to all registries. It returns false if the cache has no content with the key
// to.key.
func (to *supplier) fillFromCache(kept registrycache.Cache) (bool, error) {
	for _, dir := range to.dirs {
		if filled, err := kept.Fill(to.key, dir); err != nil || !filled {
			return false, err
		}
	}
	return true, nil
}

func registryKey(before string, specs []image.Spec, images []v1.Image) (string, error) {
	digests := make(map[string]string, len(specs))
	for i, spec := range specs {
		digest, err := images[i].Digest()
		if err != nil {
			return "", fmt.Errorf("read the image %s: %w", spec.Name, err)
		}
		digests[spec.Name] = digest.String()
	}
	return registrycache.Key(before, digests), nil
}

func pushTo(ctx context.Context, registry image.Registry, specs []image.Spec, images []v1.Image) error {
	for i, spec := range specs {
		if _, err := registry.Push(ctx, spec.Name, images[i]); err != nil {
			return err
		}
	}
	return nil
}
