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

// configFile is the file that Porch's users have.
type configFile struct {
	Functions []struct {
		Function string   `yaml:"function"`
		Images   []string `yaml:"images"`
		// Prefork is ours: how many processes are kept started.
		Prefork *int `yaml:"prefork"`
		// MaxEvaluationTime is ours: how long the function may run.
		MaxEvaluationTime *time.Duration `yaml:"maxEvaluationTime"`
	} `yaml:"functions"`
}

// functionFields are the keys of a function.
var functionFields = []string{"function", "images", "prefork", "maxEvaluationTime"}

// parseFile reads a configuration file, and returns its unknown fields. A file without
// functions is an error, since it is most often still being written, or has a typing error:
// an empty list means no functions.
func parseFile(content []byte) (file configFile, unknown []string, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return file, nil, notFunctions(err)
	}
	if err := document.Decode(&file); err != nil {
		return file, nil, notFunctions(err)
	}
	if file.Functions == nil {
		return file, nil, errors.New("it has no functions: write functions: [] if there are to be none")
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

// hasMore reports whether anything follows a file's first document. Only that document is
// read, as in Porch.
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

// unknownFields returns the keys of a mapping, which is called prefix, that are not known.
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
