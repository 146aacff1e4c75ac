// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/mod/semver"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// catalogRepositories are the prefixes of image repositories with functions of the public catalog. The second prefix is
// the catalog's path in ghcr.io. Pulls from ghcr.io use it, because a registry of the cluster mirrors ghcr.io.
var catalogRepositories = []string{"krm-functions-catalog/", "kptdev/krm-functions-catalog/"}

// catalog returns images of the catalog's functions. The go.mod files below functions/ list these functions as tools.
func (s Source) catalog(ctx context.Context) ([]image.Spec, error) {
	modules, err := s.catalogModules()
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, module := range modules {
		programs, err := s.buildPrograms(ctx, module, "tool")
		if err != nil {
			return nil, err
		}
		for _, program := range programs {
			specs = append(specs, catalogImages(program)...)
		}
	}
	return specs, nil
}

func (s Source) catalogModules() ([]string, error) {
	var modules []string
	for _, pattern := range []string{"functions/go.mod", "functions/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(s.Root, pattern))
		if err != nil {
			return nil, fmt.Errorf("look for the catalog's functions: %w", err)
		}
		for _, file := range found {
			module, err := filepath.Rel(s.Root, filepath.Dir(file))
			if err != nil {
				return nil, fmt.Errorf("look for the catalog's functions: %w", err)
			}
			modules = append(modules, module)
		}
	}
	return modules, nil
}

// catalogImages returns the images of a function under each repository prefix. As in the catalog, each image has two
// tags. The first is the release, such as v0.4.5. The second is the minor version, such as v0.4, which moves with each
// release.
func catalogImages(program program) []image.Spec {
	var specs []image.Spec
	for _, repository := range catalogRepositories {
		for _, tag := range []string{program.Version, semver.MajorMinor(program.Version)} {
			specs = append(specs, functionImage(repository+filepath.Base(program.Package)+":"+tag, program.Path))
		}
	}
	return specs
}
