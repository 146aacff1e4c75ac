// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// kustomizations lists kustomize's files. They count as resources even without apiVersion, kind and name.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// CheckInput returns an error for the first resource that functions cannot process, before any function runs.
func CheckInput(resources []*yaml.RNode) error {
	if err := checkResources(resources); err != nil {
		return fmt.Errorf("%w; if a file is no resource, name it in .krmignore", err)
	}
	return checkPlaces(resources, inputPlaces)
}

// checkResources returns an error for a resource without apiVersion, kind or name, because functions may rely on these.
func checkResources(resources []*yaml.RNode) error {
	for _, r := range resources {
		file, _ := pkgtree.File(r)
		if isKustomization(r, file) {
			continue
		}
		if list := r.GetKind(); (list == kio.ResourceListKind || list == "List") && r.Field("items") == nil {
			return fmt.Errorf("the %s%s has no items", list, inFile(file))
		}
		for _, field := range []struct{ name, value string }{
			{"apiVersion", r.GetApiVersion()}, {"kind", r.GetKind()}, {"metadata.name", r.GetName()},
		} {
			if field.value == "" {
				return fmt.Errorf("%s is not a resource: it has no %s", describeResource(r, file), field.name)
			}
		}
	}
	return nil
}

// inFile returns a phrase with the file of a resource, such as " in web.yaml". It is empty if the file is unknown.
func inFile(file string) string {
	if file == "" {
		return ""
	}
	return " in " + file
}

func describeResource(r *yaml.RNode, file string) string {
	if file != "" {
		return file
	}
	return strings.TrimSpace(fmt.Sprintf("an item %s %s", r.GetKind(), r.GetName()))
}

func isKustomization(r *yaml.RNode, file string) bool {
	return slices.Contains(kustomizations, path.Base(file)) ||
		strings.HasPrefix(r.GetApiVersion(), "kustomize.config.k8s.io") ||
		(r.GetApiVersion() == "" && r.GetKind() == "Kustomization")
}

// wording contains error texts about the files of resources. outside is about a resource outside of the package, and
// twice about two resources with the same file and index. A function's input and output have different texts.
type wording struct{ outside, twice string }

var (
	inputPlaces = wording{
		outside: "%s %s of the input is in %q, outside of the package or in its .git",
		twice:   "two resources of the input, one of them %s %s, are in %q at index %q",
	}
	outputPlaces = wording{
		outside: "it put %s %s into %q, outside of the package or into its .git",
		twice:   "it put two resources, one of them %s %s, into %q at index %q",
	}
)

// checkPlaces rejects resources in a file outside of the package, and two resources at the same index of a file.
func checkPlaces(resources []*yaml.RNode, words wording) error {
	type place struct{ pkg, file, index string }
	taken := map[place]bool{}
	for _, r := range resources {
		file, index := pkgtree.File(r)
		if file == "" {
			continue // the list contains no information about files
		}
		if !pkgtree.MayWrite(path.Clean(file)) {
			return fmt.Errorf(words.outside, r.GetKind(), r.GetName(), file)
		}
		p := place{r.GetAnnotations()[pkgtree.PackageAnnotation], path.Clean(file), index}
		if taken[p] {
			return fmt.Errorf(words.twice, r.GetKind(), r.GetName(), file, index)
		}
		taken[p] = true
	}
	return nil
}
