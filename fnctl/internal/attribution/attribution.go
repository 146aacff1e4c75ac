// SPDX-License-Identifier: Apache-2.0

// Package attribution marks resources of Google's Config Connector with an annotation, as kpt does. The value, such
// as krm-pkg-fn, names the kpt commands that processed the resource.
package attribution

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	annotation = "cnrm.cloud.google.com/blueprint"
	prefix     = "krm"
	// rendered names the command group kpt fn in the annotation's value, such as krm-pkg-fn. This group runs functions.
	rendered = "fn"
)

// groups lists kpt's command groups, such as "live" for kpt live, in the order in which the annotation names them.
var groups = []string{"pkg", rendered, "live"}

// Mark adds "fn" to the attribution annotation of each Config Connector resource, as kpt does after rendering. All
// other resources stay unchanged.
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

// marked adds "fn" to the attribution annotation's value, which is a comma-separated list. An entry of kpt changes, for
// example from "krm-pkg" to "krm-pkg-fn". If the list has no entry of kpt, marked appends "krm-fn".
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
