// SPDX-License-Identifier: Apache-2.0

// Package chart makes a Helm chart of overlays: the objects that kustomize builds, one file per overlay, and a
// template that chooses one of them.
package chart

import (
	"bytes"
	_ "embed" // the chart's own files
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is the chart's name.
const Name = "function-runner"

//go:embed templates/objects.yaml
var template string

//go:embed values.yaml
var values string

// Write writes the files of a chart into a directory. home is the repository of the images in the objects, which
// are documents of YAML, by overlay.
func Write(dir, version, home string, overlays map[string][]byte) error {
	set := strings.NewReplacer("HOME", home)
	files := map[string]string{
		"Chart.yaml":             metadata(version),
		"values.yaml":            set.Replace(values),
		"templates/objects.yaml": set.Replace(template),
	}
	for name, objects := range overlays {
		files["overlays/"+name+".yaml"] = string(bytes.TrimSpace(objects))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("write the chart: %w", err)
		}
		if err := os.WriteFile(file, []byte(files[path]), 0o600); err != nil {
			return fmt.Errorf("write the chart: %w", err)
		}
	}
	return nil
}

// metadata returns Chart.yaml. Helm's versions have no v.
func metadata(version string) string {
	return fmt.Sprintf(`apiVersion: v2
name: %s
description: Runs KRM functions for Porch and kpt, on Kubernetes.
type: application
version: %s
appVersion: %s
kubeVersion: ">=1.27.0-0"
home: https://github.com/krm-function-runner/function-runner
`, Name, strings.TrimPrefix(version, "v"), version)
}
