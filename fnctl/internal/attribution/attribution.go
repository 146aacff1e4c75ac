// SPDX-License-Identifier: Apache-2.0

// Package attribution marks the resources of Google's Config Connector as rendered, as kpt does.
package attribution

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	annotation = "cnrm.cloud.google.com/blueprint"
	prefix     = "krm"
	// rendered is kpt's name for its commands that run functions.
	rendered = "fn"
)

// groups are the groups of kpt's commands, in the order of the annotation.
var groups = []string{"pkg", rendered, "live"}

// Mark adds to the annotation of each Config Connector resource that functions rendered it.
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

// marked returns a value of the annotation, a list, with the command's group in its entries of kpt.
func marked(value string) string {
	if value == "" {
		return prefix + "-" + rendered
	}
	parts := strings.Split(value, ",")
	found := false
	for i, part := range parts {
		if strings.Contains(part, prefix) {
			parts[i], found = withGroup(part), found || strings.Contains(part, prefix+"-")
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
