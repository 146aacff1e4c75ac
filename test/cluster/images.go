package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/bundle"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/program"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func imagesCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "Build what changed of the images, also the project's own programs', and push it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.needSources(); err != nil {
				return err
			}
			l, running, err := o.running()
			if err != nil {
				return err
			}
			if err := o.pushImages(command.Context(), command.ErrOrStderr(), describe(l, running), running, func() {}); err != nil {
				return err
			}
			return o.pushPrograms(command.Context(), command.ErrOrStderr(), l, running, "programs", program.All())
		},
	}
}

// pushImages gives every registry the images of functions and tests. It says when pods
// can start, which is early.
func (o *options) pushImages(ctx context.Context, log io.Writer, info bed.Info, running state.State, podsCanStart func()) error {
	start := time.Now()
	var registries []image.Registry
	for _, described := range info.Registries {
		registry, err := image.Open(ctx, described, space.Dialer{PID: running.Init.PID}.DialContext)
		if err != nil {
			return err
		}
		registries = append(registries, registry)
	}
	source := o.source()
	for _, step := range []struct {
		images func(context.Context) ([]image.Spec, error)
		done   func()
	}{{source.Tools, podsCanStart}, {source.Functions, func() {}}} {
		specs, err := step.images(ctx)
		if err != nil {
			return err
		}
		if err := o.buildAndPush(ctx, registries, specs); err != nil {
			return err
		}
		step.done()
	}
	fmt.Fprintf(log, "the registries have their images after %.1fs\n", time.Since(start).Seconds())
	return nil
}

func (o *options) buildAndPush(ctx context.Context, registries []image.Registry, specs []image.Spec) error {
	images, err := o.builder().BuildAll(ctx, specs)
	if err != nil {
		return err
	}
	pushes, ctx := errgroup.WithContext(ctx)
	for _, registry := range registries {
		pushes.Go(func() error { return pushTo(ctx, registry, specs, images) })
	}
	return pushes.Wait()
}

func pushTo(ctx context.Context, registry image.Registry, specs []image.Spec, images []v1.Image) error {
	for i, spec := range specs {
		if _, err := registry.Push(ctx, spec.Name, images[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) builder() image.Builder {
	return image.Builder{Dir: filepath.Join(o.cache, "layers")}
}

// kept are the images of programs.
func (o *options) kept() image.Cache {
	return image.Cache{Dir: filepath.Join(o.cache, "images")}
}

func (o *options) source() bundle.Source {
	return bundle.Source{Root: o.root, Out: filepath.Join(o.root, ".build", "images")}
}
