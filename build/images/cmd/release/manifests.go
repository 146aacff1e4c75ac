// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/build/images/archive"
	"github.com/krm-function-runner/function-runner/build/images/chart"
	"github.com/krm-function-runner/function-runner/build/images/pinned"
	"github.com/krm-function-runner/function-runner/build/images/release"
)

// kustomize is the command that builds the objects of the chart, by default: with the libraries that the tests of
// manifests use.
const kustomize = "go run sigs.k8s.io/kustomize/kustomize/v5@v5.8.1 build"

// manifests writes the archives of the manifests and of the chart, both with these images.
func (r releaser) manifests(ctx context.Context, digests map[string]string) error {
	deploy := filepath.Join(r.scratch, "deploy")
	if err := os.CopyFS(deploy, os.DirFS(filepath.Join(r.root, "deploy"))); err != nil {
		return fmt.Errorf("copy the manifests: %w", err)
	}
	if err := pinned.Tree(deploy, digests); err != nil {
		return err
	}
	if err := r.archive("deploy_"+r.version+".tar.gz", deploy, "deploy", archive.WriteTarGz); err != nil {
		return err
	}
	overlays, err := r.overlays(ctx, filepath.Join(deploy, "overlays"))
	if err != nil {
		return err
	}
	dir := filepath.Join(r.scratch, "chart")
	if err := chart.Write(dir, r.version, release.Home, overlays); err != nil {
		return err
	}
	return r.archive("chart_"+r.version+".tgz", dir, chart.Name, archive.WriteTarGz)
}

// overlays builds the objects of all overlays.
func (r releaser) overlays(ctx context.Context, dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the overlays: %w", err)
	}
	overlays := map[string][]byte{}
	for _, entry := range entries {
		line := append(strings.Fields(r.kustomize), filepath.Join(dir, entry.Name()))
		build := exec.CommandContext(ctx, line[0], line[1:]...)
		build.Env = slices.Concat(r.env, []string{"GOWORK=off", "GOFLAGS="})
		var objects, messages bytes.Buffer
		build.Stdout, build.Stderr = &objects, &messages
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("build the overlay %s: %w\n%s", entry.Name(), err, &messages)
		}
		overlays[entry.Name()] = objects.Bytes()
	}
	return overlays, nil
}
