package pipeline

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// kustomizations are files that are resources by custom, although they need not
// name themselves as such.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// CheckInput reports the first resource that no function can be given, before any runs.
func CheckInput(resources []*yaml.RNode) error {
	if err := checkResources(resources); err != nil {
		return fmt.Errorf("%w; if a file is no resource, name it in .krmignore", err)
	}
	return nil
}

// checkResources reports the first resource that is none: functions may rely on
// apiVersion, kind and name.
func checkResources(resources []*yaml.RNode) error {
	for _, r := range resources {
		file, _ := pkgtree.File(r)
		if isKustomization(r, file) {
			continue
		}
		for _, field := range []struct{ name, value string }{
			{"apiVersion", r.GetApiVersion()}, {"kind", r.GetKind()}, {"metadata.name", r.GetName()},
		} {
			if field.value == "" {
				return fmt.Errorf("%s is not a resource: it has no %s", describe(r, file), field.name)
			}
		}
	}
	return nil
}

// describe names something that may not have a name.
func describe(r *yaml.RNode, file string) string {
	if file != "" {
		return file
	}
	return strings.TrimSpace(fmt.Sprintf("an item %s %s", r.GetKind(), r.GetName()))
}

func isKustomization(r *yaml.RNode, file string) bool {
	return slices.Contains(kustomizations, path.Base(file)) ||
		strings.HasPrefix(r.GetApiVersion(), "kustomize.config.k8s.io") ||
		r.GetApiVersion() == "" && r.GetKind() == "Kustomization"
}

// checkPlaces reports resources that a function put outside of their package, and
// resources that it put in one place.
func checkPlaces(resources []*yaml.RNode) error {
	type place struct{ pkg, file, index string }
	taken := map[place]bool{}
	for _, r := range resources {
		file, index := pkgtree.File(r)
		if file == "" {
			continue // it comes from a list that says nothing of files
		}
		if !filepath.IsLocal(filepath.FromSlash(file)) {
			return fmt.Errorf("it put %s %s into %q, outside of the package", r.GetKind(), r.GetName(), file)
		}
		p := place{r.GetAnnotations()[pkgtree.PackageAnnotation], path.Clean(file), index}
		if taken[p] {
			return fmt.Errorf("it put two resources, one of them %s %s, into %q at index %q", r.GetKind(), r.GetName(), file, index)
		}
		taken[p] = true
	}
	return nil
}
