// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/krm-function-runner/function-runner/build/images/archive"
	"github.com/krm-function-runner/function-runner/build/images/bundle"
	"github.com/krm-function-runner/function-runner/build/images/downloads"
	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/release"
)

// registryAddress is that of the registry which ko pushes to. It is always the same, since ko writes the name of
// an image's base into the image.
const registryAddress = "localhost:42445"

// archiver writes an archive.
type archiver = func(io.Writer, []archive.File, time.Time) error

// imagePlatforms are the platforms of images.
var imagePlatforms = []downloads.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}

// images writes the archive of the images, and returns their digests.
func (r releaser) images(ctx context.Context) (digests map[string]string, err error) {
	stop, err := r.serveRegistry(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	bundler, err := r.bundler(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.scratch, "images")
	images, err := bundle.Create(dir)
	if err != nil {
		return nil, err
	}
	if digests, err = bundler.Bundle(ctx, images); err != nil {
		return nil, err
	}
	name := "images_" + r.version
	return digests, r.archive(name+".tar", dir, name, archive.WriteTar)
}

// bundler returns what builds the images, with the data that they contain beside their programs.
func (r releaser) bundler(ctx context.Context) (release.Bundler, error) {
	bundler := release.Bundler{
		Publisher: release.Publisher{
			Repository: registryAddress, Tag: r.version, Revision: r.revision, Layers: r.layers, Out: io.Discard,
			Ko: r.koSettings(),
		},
		Build: provenance.Build{
			Version: r.version, Revision: r.revision,
			Tools: map[string]string{"go": runtime.Version(), "ko": release.KoVersion},
		},
		Key: r.key, Functions: map[string][]image.File{}, Probe: map[string]string{},
	}
	for _, platform := range imagePlatforms {
		if !r.selected(platform) {
			continue
		}
		bundler.Build.Platforms = append(bundler.Build.Platforms, platform.String())
		if err := r.data(ctx, platform, bundler); err != nil {
			return release.Bundler{}, err
		}
	}
	return bundler, nil
}

func (r releaser) koSettings() release.Ko {
	return release.Ko{
		Command: r.koCommand, Root: r.root,
		Env: slices.Concat(r.env, []string{"VERSION=" + r.version, "GOFLAGS=-buildvcs=false"}),
	}
}

// koCommand returns the command line of ko, which runs in dir.
func (r releaser) koCommand(dir string, args ...string) []string {
	if r.ko == "" {
		return release.GoRunKo(dir, args...)
	}
	return append([]string{"env", "--chdir=" + dir, r.ko}, args...)
}

// data builds what images contain beside their program.
func (r releaser) data(ctx context.Context, on downloads.Platform, bundler release.Bundler) error {
	dir := filepath.Join(r.scratch, "data-"+on.Arch)
	functions, err := r.maker().Functions(ctx, on, filepath.Join(dir, "functions"))
	if err != nil {
		return err
	}
	for _, f := range functions {
		path := release.DataDir + "/functions/" + f.Path
		if f.Path == "config.yaml" {
			path = release.DataDir + "/" + f.Path
		}
		bundler.Functions[on.Arch] = append(bundler.Functions[on.Arch],
			image.File{Path: path, Mode: f.Mode, Source: f.Source})
	}
	bundler.Probe[on.Arch], err = r.maker().WrapperServer(ctx, on, dir)
	return err
}

// serveRegistry serves a registry without content, until it is stopped.
func (r releaser) serveRegistry(ctx context.Context) (stop func() error, err error) {
	blobs := filepath.Join(r.scratch, "registry")
	if err := os.Mkdir(blobs, 0o750); err != nil {
		return nil, fmt.Errorf("make a directory for ko's registry: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", registryAddress)
	if err != nil {
		return nil, fmt.Errorf("serve a registry for ko: %w: wait for the other release that is made here", err)
	}
	server := &http.Server{
		Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)),
			registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))),
		ReadHeaderTimeout: time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	}, nil
}
