package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/program"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// pushPrograms gives the open registry the images of the project's programs, as
// FOLDER/NAME.
func (o *options) pushPrograms(ctx context.Context, log io.Writer, l layout.Layout, running state.State, folder string, programs []program.Program) error {
	described, err := describe(l, running).Registry(layout.Open.Name)
	if err != nil {
		return err
	}
	registry, err := image.Open(ctx, described, space.Dialer{PID: running.Init.PID}.DialContext)
	if err != nil {
		return err
	}
	ko, err := o.ko(ctx, l, running)
	if err != nil {
		return err
	}
	if err := o.source().Kodata(ctx); err != nil {
		return err
	}
	for _, p := range programs {
		if err := o.pushProgram(ctx, log, registry, ko, p, folder+"/"+p.Name); err != nil {
			return err
		}
	}
	return nil
}

// pushProgram builds the image only if it is not the registry's already. Go
// knows best what a program is made of, and builds it quickly if it has not
// changed: the program itself is the key of its image.
func (o *options) pushProgram(ctx context.Context, log io.Writer, registry image.Registry, ko program.Ko, p program.Program, repository string) error {
	built, err := o.source().Program(ctx, p.Module, p.Package)
	if err != nil {
		return err
	}
	base, err := o.builder().Build(p.Base())
	if err != nil {
		return err
	}
	data, err := p.DataFiles(o.root)
	if err != nil {
		return err
	}
	key, err := programKey(built, base, data)
	if err != nil {
		return err
	}
	if present, err := registry.Same(ctx, repository, key, "latest"); err != nil || present {
		return err
	}
	if _, err := registry.Push(ctx, p.Base().Name, base); err != nil {
		return err
	}
	fmt.Fprintf(log, "building the image %s with ko\n", repository)
	host := layout.Open.Host()
	return ko.Build(ctx, p, program.Target{Repository: host + "/" + repository, Base: host + "/" + p.Base().Name, Tags: []string{"latest", key}})
}

// programKey is a tag for the image that has this program and its data on this base.
func programKey(built string, base v1.Image, data []image.File) (string, error) {
	digest, err := base.Digest()
	if err != nil {
		return "", fmt.Errorf("looking at a base image: %w", err)
	}
	return image.Key(append(data, image.File{Source: built}, image.File{Content: digest.String()}, image.File{Content: component.Ko().Key()}))
}

// ko is ko in the cluster's namespaces: there is no other network there.
func (o *options) ko(ctx context.Context, l layout.Layout, running state.State) (program.Ko, error) {
	path, root, err := o.findKo(ctx)
	if err != nil {
		return program.Ko{}, err
	}
	return program.Ko{
		Command: func(folder string, args ...string) []string {
			return space.Enter(running.Init.PID, folder, append([]string{path}, args...)...)
		},
		Env:      inside(l, running),
		Root:     root,
		Insecure: true,
	}, nil
}

// findKo returns the paths of ko and of the repository.
func (o *options) findKo(ctx context.Context) (path, root string, err error) {
	dir, err := o.store().Get(ctx, component.Ko())
	if err != nil {
		return "", "", err
	}
	if root, err = filepath.Abs(o.root); err != nil {
		return "", "", fmt.Errorf("finding the repository: %w", err)
	}
	return filepath.Join(dir, "ko"), root, nil
}
