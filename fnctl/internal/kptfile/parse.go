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

// Parse reads a Kptfile. File is its path for error messages. An invalid field is reported as a
// [FieldError].
func Parse(file string, data []byte) (*Kptfile, error) {
	doc, err := decode(file, data)
	if err != nil {
		return nil, err
	}
	if err := checkPipeline(file, doc.Pipeline); err != nil {
		return nil, err
	}
	isOn := func(annotation string) bool { return strings.EqualFold(doc.Metadata.Annotations[annotation], "true") }
	return &Kptfile{
		File:          file,
		Name:          doc.Metadata.Name,
		ParentsFirst:  isOn(parentsFirstAnnotation),
		SaveOnFailure: isOn(saveOnFailureAnnotation),
		Pipeline:      doc.Pipeline,
	}, nil
}

// decode returns the fields of a Kptfile. Unknown fields are errors.
func decode(file string, data []byte) (doc document, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return doc, fmt.Errorf("%s is empty; it must be a Kptfile of %s", file, apiVersion)
	} else if err != nil {
		return doc, yamlProblem(file, err)
	}
	if err := checkType(file, doc); err != nil {
		return doc, err
	}
	if len(doc.Rest) > 0 {
		field := slices.Min(slices.Collect(maps.Keys(doc.Rest)))
		hint := "its functions are in pipeline"
		if near := nearestName(field, fieldsOf("kptfile.document")); near != "" {
			hint = "do you mean " + near + "?"
		}
		return doc, &FieldError{file, field, "", "is no field of a Kptfile: " + hint}
	}
	return doc, nil
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
