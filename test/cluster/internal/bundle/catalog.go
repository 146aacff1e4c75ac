package bundle

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/mod/semver"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
)

// catalogRepository is where the registries have the catalog's functions.
const catalogRepository = "krm-functions-catalog/"

// catalog are the images of the functions that the modules below functions/
// name as their tools.
func (s Source) catalog(ctx context.Context) ([]image.Spec, error) {
	modules, err := s.catalogModules()
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, module := range modules {
		programs, err := s.build(ctx, module, "tool")
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
			return nil, fmt.Errorf("looking for the catalog's functions: %w", err)
		}
		for _, file := range found {
			module, err := filepath.Rel(s.Root, filepath.Dir(file))
			if err != nil {
				return nil, fmt.Errorf("looking for the catalog's functions: %w", err)
			}
			modules = append(modules, module)
		}
	}
	return modules, nil
}

// catalogImages are one image under two names, as the catalog publishes them:
// the release, and its minor version, which moves.
func catalogImages(program program) []image.Spec {
	name := catalogRepository + filepath.Base(program.Package)
	return []image.Spec{
		functionImage(name+":"+program.Version, program.Path),
		functionImage(name+":"+semver.MajorMinor(program.Version), program.Path),
	}
}
