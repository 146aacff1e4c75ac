// Package bundle knows which images a cluster's registries offer, and builds
// the programs in them.
package bundle

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
)

// Source is what the images are made of.
type Source struct {
	// Root is the root of the repository.
	Root string
	// Out keeps the built programs.
	Out string
}

// Tools are the images without which no pod runs, and no test: what holds a pod's
// namespaces, and what the tests look around with.
func (s Source) Tools(ctx context.Context) ([]image.Spec, error) {
	programs, err := s.build(ctx, "test", "./images/...")
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, program := range programs {
		specs = append(specs, static(filepath.Base(program.Package)+":latest", program.Path))
	}
	return specs, nil
}

// Functions builds all functions and describes their images.
func (s Source) Functions(ctx context.Context) ([]image.Spec, error) {
	misbehaving, err := s.misbehaving(ctx)
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

// misbehaving are the images of the test bed's own functions.
func (s Source) misbehaving(ctx context.Context) ([]image.Spec, error) {
	programs, err := s.build(ctx, "test", "./functions/...")
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, program := range programs {
		specs = append(specs, functionImage("test/"+filepath.Base(program.Package)+":v1", program.Path))
	}
	return specs, nil
}

// static is an image of nothing but a static program.
func static(name, program string) image.Spec {
	return image.Spec{
		Name:       name,
		Files:      []image.File{{Path: "/program", Mode: 0o755, Source: program}},
		Entrypoint: []string{"/program"},
		User:       "65532",
	}
}

// functionImage is a static function as the catalog's images have it. The
// function "entrypoint" shows that a command line has two parts.
func functionImage(name, program string) image.Spec {
	spec := static(name, program)
	spec.Files = []image.File{{Path: "/usr/local/bin/function", Mode: 0o755, Source: program}}
	spec.Entrypoint = []string{"/usr/local/bin/function"}
	if strings.HasPrefix(name, "test/entrypoint:") {
		spec.Entrypoint = append(spec.Entrypoint, "from-entrypoint")
		spec.Cmd = []string{"from-cmd", "two words"}
	}
	return spec
}
