// SPDX-License-Identifier: Apache-2.0

// Package kptfile reads a package's name and functions from its Kptfile, and adds functions to the file.
package kptfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// FileName is the name of the file that makes a directory a package.
const FileName = "Kptfile"

// Kptfile contains the fields of the file Kptfile that matter for rendering. All other fields are preserved,
// because the file is also a resource of the package.
type Kptfile struct {
	// File is the path of the Kptfile, for error messages.
	File string
	// Name is the package's name.
	Name string
	// ParentsFirst makes the package's functions run before the functions of the packages inside it. The package's
	// functions then process the resources of all these packages. ParentsFirst is effective only in the outermost package.
	ParentsFirst bool
	// SaveOnFailure makes a failed rendering write the changes of the functions before the failed function. It is
	// effective only in the outermost package.
	SaveOnFailure bool
	// Pipeline contains the functions of the package. It is empty if the Kptfile contains no pipeline.
	Pipeline Pipeline
}

// Annotations of a Kptfile that configure rendering. The value "true" turns a setting on.
const (
	parentsFirstAnnotation  = "kpt.dev/bfs-rendering"
	saveOnFailureAnnotation = "kpt.dev/save-on-render-failure"
)

// Pipeline lists the functions of a package in the order in which they run.
type Pipeline struct {
	// Mutators change resources. Each mutator receives the output of the previous mutator.
	Mutators []Function `yaml:"mutators"`
	// Validators run after all mutators. Their output is ignored.
	Validators []Function `yaml:"validators"`
}

// Function is an entry of a pipeline, with an image or a program, its configuration and its selectors. The fields are
// in the order in which kpt writes them.
type Function struct {
	// Image is the function's container image, with or without registry and tag.
	Image string `yaml:"image,omitempty"`
	// Exec is a program on the user's machine, with its arguments, that runs instead of an image.
	Exec string `yaml:"exec,omitempty"`
	// ConfigPath is the path of the file with the function's configuration, relative to the package, with slashes.
	ConfigPath string `yaml:"configPath,omitempty"`
	// ConfigMap contains the configuration as keys and values. A function uses either ConfigMap or ConfigPath.
	ConfigMap map[string]string `yaml:"configMap,omitempty"`
	// Tag, if set, replaces the tag in Image. It is an exact tag or a version constraint.
	Tag string `yaml:"tag,omitempty"`
	// Name distinguishes functions with the same image. kpt uses it when it merges a new version of a package.
	Name string `yaml:"name,omitempty"`
	// Selectors choose the function's input. A resource is selected if it matches any selector, or if there are none.
	Selectors []Selector `yaml:"selectors,omitempty"`
	// Exclude lists selectors of resources to remove from the input. A resource is removed if it matches any selector.
	Exclude []Selector `yaml:"exclude,omitempty"`
}

// Title returns the function's name in messages, which is its image or program.
func (f Function) Title() string { return cmp.Or(f.Image, f.Exec) }

// FullTitle returns the function's name in messages, including the field Tag if it is set.
func (f Function) FullTitle() string {
	if f.Tag != "" {
		return fmt.Sprintf("%s (tag %s)", f.Image, f.Tag)
	}
	return f.Title()
}

// Selector selects resources. It matches a resource if all fields that are set equal the resource's properties.
type Selector struct {
	APIVersion  string            `yaml:"apiVersion,omitempty"`
	Kind        string            `yaml:"kind,omitempty"`
	Name        string            `yaml:"name,omitempty"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// IsEmpty reports whether no field of the selector is set.
func (s Selector) IsEmpty() bool {
	return s.APIVersion == "" && s.Kind == "" && s.Name == "" && s.Namespace == "" &&
		len(s.Labels) == 0 && len(s.Annotations) == 0
}

// apiVersion is the only supported API version of Kptfiles.
const apiVersion = "kpt.dev/v1"

// Parse parses the content of a Kptfile with the given path. An invalid field is a [FieldError].
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
