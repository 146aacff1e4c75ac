// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// idAnnotation contains the id of a resource while a function runs. By the ids, fnctl merges the function's output with
// the resources that were not selected. kpt uses the same annotation key, which functions preserve.
const idAnnotation = "internal.config.kubernetes.io/kpt-resource-id"

func setIDs(resources []*yaml.RNode) error {
	for i, r := range resources {
		if err := r.PipeE(yaml.SetAnnotation(idAnnotation, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

func clearIDs(resources []*yaml.RNode) error {
	for _, r := range resources {
		if err := r.PipeE(yaml.ClearAnnotation(idAnnotation)); err != nil {
			return err
		}
	}
	return nil
}

func resourceID(resource *yaml.RNode) string {
	return resource.GetAnnotations()[idAnnotation]
}

// selectResources returns the resources that the function receives. It selects the resources that match any selector,
// or all resources if there are no selectors. It then omits resources that match an exclusion. An exclusion without
// properties matches no resource.
func (c Call) selectResources(resources []*yaml.RNode) []*yaml.RNode {
	f := c.Function
	var selected []*yaml.RNode
	for _, r := range resources {
		matches := func(s kptfile.Selector) bool { return matchSelector(r, s) }
		excludes := func(s kptfile.Selector) bool { return !s.IsEmpty() && matchSelector(r, s) }
		if (len(f.Selectors) == 0 || slices.ContainsFunc(f.Selectors, matches)) &&
			!slices.ContainsFunc(f.Exclude, excludes) {
			selected = append(selected, r)
		}
	}
	return selected
}

func matchSelector(r *yaml.RNode, s kptfile.Selector) bool {
	return matchValue(s.APIVersion, r.GetApiVersion()) &&
		matchValue(s.Kind, r.GetKind()) &&
		matchValue(s.Name, r.GetName()) &&
		matchValue(s.Namespace, r.GetNamespace()) &&
		matchAll(s.Labels, r.GetLabels()) &&
		matchAll(s.Annotations, r.GetAnnotations())
}

func matchValue(want, have string) bool {
	return want == "" || want == have
}

func matchAll(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// mergeOutput returns all resources after a function changed the selected resources. It replaces each selected resource
// by the output with the same id, or removes it if there is no such output. It appends new resources in the output.
func mergeOutput(resources, selected, output []*yaml.RNode) []*yaml.RNode {
	isSelected := map[string]bool{}
	for _, r := range selected {
		isSelected[resourceID(r)] = true
	}
	changed := map[string]*yaml.RNode{}
	var added []*yaml.RNode
	for _, r := range output {
		// If several resources in the output have the same id, the first is the selected resource and the rest are new.
		if _, again := changed[resourceID(r)]; isSelected[resourceID(r)] && !again {
			changed[resourceID(r)] = r
		} else {
			added = append(added, r)
		}
	}
	var merged []*yaml.RNode
	for _, r := range resources {
		if !isSelected[resourceID(r)] {
			merged = append(merged, r)
		} else if c, ok := changed[resourceID(r)]; ok {
			merged = append(merged, c)
		}
	}
	return append(merged, added...)
}
