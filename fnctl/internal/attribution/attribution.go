// SPDX-License-Identifier: Apache-2.0

// Package attribution adds kpt's attribution annotation to resources of Google's Config Connector.
package attribution

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	annotation = "cnrm.cloud.google.com/blueprint"
	prefix     = "krm"
	// rendered is the name of kpt's command group that runs functions (kpt fn).
	rendered = "fn"
)

// groups lists the command groups of kpt in the order in which the annotation contains them.
var groups = []string{"pkg", rendered, "live"}

// Mark adds the group fn to the attribution annotation of each Config Connector resource.
func Mark(resources []*yaml.RNode) error {
	for _, r := range resources {
		if !strings.Contains(r.GetApiVersion(), ".cnrm.") || r.Field(yaml.MetadataField).IsNilOrEmpty() {
			continue
		}
		if err := r.PipeE(yaml.SetAnnotation(annotation, marked(r.GetAnnotations()[annotation]))); err != nil {
			return err
		}
	}
	return nil
}

// marked returns the annotation's value, a comma-separated list, with the group fn in each entry of kpt. It appends
// an entry if the list contains no entry of kpt.
func marked(value string) string {
	if value == "" {
		return prefix + "-" + rendered
	}
	parts := strings.Split(value, ",")
	found := false
	for i, part := range parts {
		if strings.Contains(part, prefix) {
			parts[i] = withGroup(part)
			found = found || strings.Contains(part, prefix+"-")
		}
	}
	if !found {
		return value + "," + prefix + "-" + rendered
	}
	return strings.Join(parts, ",")
}

func withGroup(part string) string {
	names := []string{prefix}
	for _, group := range groups {
		if group == rendered || strings.Contains(part, group) {
			names = append(names, group)
		}
	}
	return strings.Join(slices.Compact(names), "-")
}
