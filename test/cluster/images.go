// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/bundle"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/imagecache"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func imagesCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "Build what changed of the images, also the project's own programs', and push it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			l, running, err := o.suppliedCluster()
			if err != nil {
				return err
			}
			if err := o.pushImages(command.Context(), command.ErrOrStderr(), l, running, false, func() {}); err != nil {
				return err
			}
			return o.pushPrograms(command.Context(), command.ErrOrStderr(), l, running, "programs", allPrograms())
		},
	}
}

// pushImages pushes images to all registries of a cluster. It first pushes images of tools, and then calls the function
// podsCanStart, because pods can start without the images of functions. Finally, it pushes the images of functions. The
// argument fresh is true if the registries are new. In this case, images are copied from the cache if possible.
func (o *options) pushImages(ctx context.Context, log io.Writer, l layout.Layout, running state.State, fresh bool,
	podsCanStart func(),
) error {
	start := time.Now()
	to := supplier{options: o, fresh: fresh}
	if err := to.open(ctx, l, running); err != nil {
		return err
	}
	source := o.imageSource()
	for _, step := range []struct {
		what   string
		images func(context.Context) ([]image.Spec, error)
		done   func()
	}{{"tools", source.Tools, podsCanStart}, {"functions", source.Functions, func() {}}} {
		specs, err := step.images(ctx)
		if err != nil {
			return err
		}
		if err := to.supplyImages(ctx, step.what, specs); err != nil {
			return err
		}
		step.done()
	}
	fmt.Fprintf(log, "the registries have their images after %.1fs\n", time.Since(start).Seconds())
	return nil
}

func (o *options) builder() image.Builder {
	return image.Builder{Dir: filepath.Join(o.cache, "layers")}
}

// imageCache returns the cache for images of the project's own programs.
func (o *options) imageCache() imagecache.Cache {
	return imagecache.Cache{Dir: filepath.Join(o.cache, "images")}
}

// registryCache returns the directory of cached registry files. Copying these files is faster than pushing images.
func (o *options) registryCache() string { return filepath.Join(o.cache, "stock") }

func (o *options) imageSource() bundle.Source {
	return bundle.Source{Root: o.root, Out: filepath.Join(o.root, ".build", "images")}
}
