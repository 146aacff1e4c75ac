// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// configFile is the content of the exec evaluator's configuration file: Porch's format with two additional fields.
type configFile struct {
	Functions []struct {
		Function string   `yaml:"function"`
		Images   []string `yaml:"images"`
		// Prefork is the number of spare processes, started in advance, for the function. Porch's format lacks this field.
		Prefork *int `yaml:"prefork"`
		// MaxEvaluationTime is the time limit of the function. Porch's format lacks this field.
		MaxEvaluationTime *time.Duration `yaml:"maxEvaluationTime"`
	} `yaml:"functions"`
}

// functionFields are the known keys of a function in the configuration file. Other keys cause a warning.
var functionFields = []string{"function", "images", "prefork", "maxEvaluationTime"}

// parseFile parses a configuration file, and returns its unknown fields. It returns an error if the key "functions" is
// missing, because the file is then probably incomplete or the key is misspelled. An empty list of functions is valid.
func parseFile(content []byte) (file configFile, unknown []string, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return file, nil, notFunctions(err)
	}
	if err := document.Decode(&file); err != nil {
		return file, nil, notFunctions(err)
	}
	if file.Functions == nil {
		return file, nil, errors.New("it lists no functions: write functions: [] if there are none")
	}
	root := document.Content[0]
	unknown = unknownFields("", root, "functions")
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value != "functions" {
			continue
		}
		for j, entry := range root.Content[i+1].Content {
			prefix := fmt.Sprintf("functions[%d].", j)
			unknown = append(unknown, unknownFields(prefix, entry, functionFields...)...)
		}
	}
	if hasMore(content) {
		unknown = append(unknown, "(a second document)")
	}
	return file, unknown, nil
}

// hasMore reports whether the file contains a second YAML document. Like Porch, we read only the first document, and a
// second document causes a warning.
func hasMore(content []byte) bool {
	var first, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(content))
	if err := errors.Join(documents.Decode(&first), documents.Decode(&second)); err != nil {
		return !errors.Is(err, io.EOF)
	}
	return second.Content[0].ShortTag() != "!!null"
}

func notFunctions(err error) error {
	return fmt.Errorf("not the YAML of functions and their images: %w", err)
}

// unknownFields returns the keys of a YAML mapping that are not in the list known. It adds prefix to each key, so that
// users find the key in the file.
func unknownFields(prefix string, mapping *yaml.Node, known ...string) (unknown []string) {
	if mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if key := mapping.Content[i].Value; key != "<<" && !slices.Contains(known, key) {
			unknown = append(unknown, prefix+key)
		}
	}
	return unknown
}
