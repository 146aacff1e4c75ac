// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// FileOf returns the file of the first original resource with the given properties, and the resource's index in the
// file. An empty property matches all resources. The file is empty if no resource matches.
func (t *Tree) FileOf(apiVersion, kind, namespace, name string) (file string, index int) {
	for path, f := range t.files {
		for i, r := range f.resources {
			if matchesAny(apiVersion, r.GetApiVersion()) && matchesAny(kind, r.GetKind()) &&
				matchesAny(namespace, r.GetNamespace()) && matchesAny(name, r.GetName()) && (file == "" || path < file) {
				file, index = path, i
			}
		}
	}
	return file, index
}

func matchesAny(want, have string) bool { return want == "" || want == have }

// Has reports whether the tree contains a file with resources at this path, relative to the tree's root.
func (t *Tree) Has(file string) bool { return len(t.files[file].resources) > 0 }

// Line returns the line number of a field in the original file, for reports. index is the resource's position in
// the file. If the resource lacks the field, Line returns the line of the closest enclosing field. For an unknown
// file, Line returns 1.
func (t *Tree) Line(file string, index int, field string) int {
	decoder := yaml.NewDecoder(bytes.NewReader(t.files[file].data))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return 1
		}
		if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
			continue // comments only
		}
		if index == 0 {
			return lineOf(document.Content[0], splitField(field))
		}
		index--
	}
}

// splitField splits a path such as spec.containers[0].image or spec.containers[name=web] into its parts.
func splitField(path string) []string {
	path = strings.NewReplacer("[", ".[", "]", "").Replace(strings.Trim(path, "./"))
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// lineOf returns the line number of a field below node, by the parts of the field's path.
func lineOf(node *yaml.Node, parts []string) int {
	if len(parts) == 0 {
		return node.Line
	}
	if node.Kind == yaml.MappingNode {
		key, value, rest := entryOf(node, parts)
		switch {
		case key == nil:
			return node.Line
		case len(rest) == 0:
			return key.Line
		}
		return max(key.Line, lineOf(value, rest))
	}
	for i, item := range node.Content {
		if isItem(item, i, strings.TrimPrefix(parts[0], "[")) {
			return lineOf(item, parts[1:])
		}
	}
	return node.Line
}

// entryOf returns the key and value of the map entry at the beginning of a path. It also returns the rest of the path.
// A key may consist of several parts, because annotation keys contain dots. All results are nil if no entry matches.
func entryOf(node *yaml.Node, parts []string) (key, value *yaml.Node, rest []string) {
	for n := 1; n <= len(parts); n++ {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == strings.Join(parts[:n], ".") {
				return node.Content[i], node.Content[i+1], parts[n:]
			}
		}
	}
	return nil, nil, nil
}

// isItem reports whether a selector in a path matches an item of a list, by index or by a field such as name=web.
func isItem(item *yaml.Node, index int, selector string) bool {
	key, value, ok := strings.Cut(selector, "=")
	if !ok {
		return selector == strconv.Itoa(index)
	}
	if item.Kind != yaml.MappingNode {
		return false
	}
	field := yaml.NewRNode(item).Field(key)
	return field != nil && yaml.GetValue(field.Value) == value
}
