// SPDX-License-Identifier: Apache-2.0

// Package bundle defines the images that are pushed to a cluster's registries, and builds their programs.
package bundle

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Source builds images from the repository's sources.
type Source struct {
	// Root is the root of the repository.
	Root string
	// Out is the output directory for programs.
	Out string
}

// Tools builds the programs in test/images, such as the pause program for pods, and describes their images.
func (s Source) Tools(ctx context.Context) ([]image.Spec, error) {
	programs, err := s.buildPrograms(ctx, "test", "./images/...")
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, program := range programs {
		specs = append(specs, staticImage(filepath.Base(program.Package)+":latest", program.Path))
	}
	return specs, nil
}

// Functions builds all functions that tests evaluate, and describes their images.
func (s Source) Functions(ctx context.Context) ([]image.Spec, error) {
	misbehaving, err := s.misbehavingImages(ctx)
	if err != nil {
		return nil, err
	}
	catalog, err := s.catalog(ctx)
	if err != nil {
		return nil, err
	}
	conforming, err := s.conformance(ctx)
	if err != nil {
		return nil, err
	}
	node, err := nodeImage()
	if err != nil {
		return nil, err
	}
	return slices.Concat(misbehaving, catalog, conforming, []image.Spec{node}), nil
}

// misbehavingImages returns images of the functions in test/functions, such as a function that crashes.
func (s Source) misbehavingImages(ctx context.Context) ([]image.Spec, error) {
	programs, err := s.buildPrograms(ctx, "test", "./functions/...")
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, program := range programs {
		specs = append(specs, functionImage("test/"+filepath.Base(program.Package)+":v1", program.Path))
	}
	return specs, nil
}

// staticImage returns an image that contains only a statically linked program.
func staticImage(name, program string) image.Spec {
	return image.Spec{
		Name:       name,
		Files:      []image.File{{Path: "/program", Mode: 0o755, Source: program}},
		Entrypoint: []string{"/program"},
		User:       "65532",
	}
}

// functionImage returns an image with a function at the same path as in images of the public function catalog. For
// tests, the image of the function "entrypoint" also has an argument in its ENTRYPOINT, and a CMD.
func functionImage(name, program string) image.Spec {
	spec := staticImage(name, program)
	spec.Files = []image.File{{Path: "/usr/local/bin/function", Mode: 0o755, Source: program}}
	spec.Entrypoint = []string{"/usr/local/bin/function"}
	if strings.HasPrefix(name, "test/entrypoint:") {
		spec.Entrypoint = append(spec.Entrypoint, "from-entrypoint")
		spec.Cmd = []string{"from-cmd", "two words"}
	}
	return spec
}
