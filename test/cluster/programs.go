// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/registry"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// allPrograms lists the programs for a cluster's registry: the programs that users install, and the toolbox for tests.
func allPrograms() []release.Program {
	toolbox := release.Program{
		Name: "toolbox", Module: "test", Package: "./images/toolbox",
		Links: map[string]string{"/bin/toolbox": "/ko-app/toolbox"},
	}
	return append([]release.Program{toolbox}, release.Programs()...)
}

// pushPrograms pushes images of this repository's programs to the registry without credentials, as PREFIX/NAME.
func (o *options) pushPrograms(ctx context.Context, log io.Writer, l layout.Layout, running state.State, prefix string,
	pushed []release.Program,
) error {
	registry, err := openRegistry(ctx, l, running)
	if err != nil {
		return err
	}
	ko, err := o.koInCluster(ctx, l, running)
	if err != nil {
		return err
	}
	if err := o.imageSource().Kodata(ctx); err != nil {
		return err
	}
	to := pusher{options: o, log: log, registry: registry, ko: ko, kept: o.imageCache()}
	for _, p := range pushed {
		if err := to.pushProgram(ctx, p, prefix+"/"+p.Name); err != nil {
			return err
		}
	}
	return nil
}

// openRegistry returns the cluster's registry that requires no credentials.
func openRegistry(ctx context.Context, l layout.Layout, running state.State) (image.Registry, error) {
	described, err := describeCluster(l, running).Registry(layout.Open.Name)
	if err != nil {
		return image.Registry{}, err
	}
	return registry.Open(ctx, described, space.Dialer{PID: running.Init.PID}.DialContext)
}

// koInCluster returns ko for use inside the cluster's namespaces, where it can reach the cluster's registries.
func (o *options) koInCluster(ctx context.Context, l layout.Layout, running state.State) (release.Ko, error) {
	path, root, err := o.findKo(ctx)
	if err != nil {
		return release.Ko{}, err
	}
	return release.Ko{
		Command: func(dir string, args ...string) []string {
			return space.Enter(running.Init.PID, dir, append([]string{path}, args...)...)
		},
		Env:      insideEnvironment(l, running),
		Root:     root,
		Insecure: true,
		Offline:  true,
	}, nil
}

func (o *options) findKo(ctx context.Context) (path, root string, err error) {
	dir, err := o.store().Get(ctx, component.Ko())
	if err != nil {
		return "", "", err
	}
	if root, err = filepath.Abs(o.root); err != nil {
		return "", "", fmt.Errorf("find the repository: %w", err)
	}
	return filepath.Join(dir, "ko"), root, nil
}
