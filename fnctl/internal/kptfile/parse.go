// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// apiVersion is the only version of the format in use.
const apiVersion = "kpt.dev/v1"

// document is a whole Kptfile. Unknown fields of the pipeline are errors: ignoring a selector, for
// example, would change other resources than intended. The content of the other fields is not
// checked.
type document struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name        string            `yaml:"name"`
		Annotations map[string]string `yaml:"annotations"`
		Rest        map[string]any    `yaml:",inline"`
	} `yaml:"metadata"`
	Pipeline Pipeline       `yaml:"pipeline"`
	Rest     map[string]any `yaml:",inline"`
}

// others are the other fields that a Kptfile may have. kpt rejects unknown fields too: a misspelled
// pipeline would silently not run.
var others = []string{"upstream", "upstreamLock", "info", "inventory", "status"}

// Parse reads a Kptfile. File is its path for error messages. An invalid field is reported as a
// [FieldError].
func Parse(file string, data []byte) (*Kptfile, error) {
	var doc document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty; it must be a Kptfile of %s", file, apiVersion)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := checkType(file, doc); err != nil {
		return nil, err
	}
	for _, field := range slices.Sorted(maps.Keys(doc.Rest)) {
		if !slices.Contains(others, field) {
			return nil, &FieldError{file, field, "", "is no field of a Kptfile: its functions are in pipeline"}
		}
	}
	if err := checkPipeline(file, doc.Pipeline); err != nil {
		return nil, err
	}
	return &Kptfile{
		File:         file,
		Name:         doc.Metadata.Name,
		ParentsFirst: strings.EqualFold(doc.Metadata.Annotations[ParentsFirstAnnotation], "true"),
		Pipeline:     doc.Pipeline,
	}, nil
}

func checkType(file string, doc document) error {
	switch {
	case doc.Kind != "Kptfile":
		return &FieldError{file, "kind", doc.Kind, "must be Kptfile"}
	case strings.HasPrefix(doc.APIVersion, "kpt.dev/v1alpha"):
		return &FieldError{file, "apiVersion", doc.APIVersion, "is no longer supported: migrate the package to " + apiVersion}
	case doc.APIVersion != apiVersion:
		return &FieldError{file, "apiVersion", doc.APIVersion, "must be " + apiVersion}
	}
	return nil
}
