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

// configFile is the configuration file of the exec evaluator, in Porch's format.
type configFile struct {
	Functions []struct {
		Function string   `yaml:"function"`
		Images   []string `yaml:"images"`
		// Prefork is the number of spare processes. Porch has no such field.
		Prefork *int `yaml:"prefork"`
		// MaxEvaluationTime is the time limit of the function. Porch has no such field.
		MaxEvaluationTime *time.Duration `yaml:"maxEvaluationTime"`
	} `yaml:"functions"`
}

// functionFields are the known keys of an item of functions.
var functionFields = []string{"function", "images", "prefork", "maxEvaluationTime"}

// parseFile parses a configuration file, and returns its unknown fields. A file without the key functions is an
// error, because it is usually incomplete (still being written) or contains a typing error. An empty list is valid.
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

// hasMore reports whether the file contains more than its first document. Only the first document is read, as in
// Porch.
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

// unknownFields returns the keys of a YAML mapping that are not in known, each with prefix.
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
