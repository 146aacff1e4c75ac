// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// configFile is the content of the exec evaluator's configuration file: Porch's format with two additional fields.
type configFile struct {
	Functions []configEntry `yaml:"functions"`
}

// configEntry maps images to a function's binary.
type configEntry struct {
	Function string   `yaml:"function"`
	Images   []string `yaml:"images"`
	// Prefork is the number of spare processes, started in advance, for the function. Porch's format lacks this field.
	Prefork *int `yaml:"prefork"`
	// MaxEvaluationTime is the time limit of the function. Porch's format lacks this field.
	MaxEvaluationTime *time.Duration `yaml:"maxEvaluationTime"`
}

// parseFile parses a configuration file, and returns its ignored parts, such as unknown fields. It returns an error if
// the key "functions" is missing, because the file is then probably incomplete or the key is misspelled. An empty list
// of functions is valid.
func parseFile(content []byte) (file configFile, ignored []string, err error) {
	if err := yaml.Unmarshal(content, &file); err != nil {
		return file, nil, fmt.Errorf("not the YAML of functions and their images: %w", err)
	}
	if file.Functions == nil {
		return file, nil, errors.New("it lists no functions: write functions: [] if there are none")
	}
	return file, findIgnored(content), nil
}

// findIgnored describes the parts of a valid configuration file that we ignore: unknown fields, and a second YAML
// document. Like Porch, we read only the first document.
func findIgnored(content []byte) (ignored []string) {
	documents := yaml.NewDecoder(bytes.NewReader(content))
	documents.KnownFields(true)
	if unknown, ok := errors.AsType[*yaml.TypeError](documents.Decode(new(configFile))); ok {
		for _, text := range unknown.Errors { // such as "line 4: field image not found in type execeval.configEntry"
			line, rest, _ := strings.Cut(text, ": field ")
			field, _, _ := strings.Cut(rest, " not found")
			ignored = append(ignored, line+": unknown field "+field)
		}
	}
	var second any
	if err := documents.Decode(&second); second != nil || (err != nil && !errors.Is(err, io.EOF)) {
		ignored = append(ignored, "a second document")
	}
	return ignored
}
