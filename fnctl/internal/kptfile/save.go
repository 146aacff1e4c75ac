// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Names of the lists of functions in a Kptfile's pipeline.
const (
	Mutators   = "mutators"
	Validators = "validators"
)

// Save adds a function to the list mutators or validators of a Kptfile. If the list already contains the same image
// or program, Save replaces this entry and returns true.
func Save(root *yaml.RNode, list string, f Function) (replaced bool, err error) {
	if err := ChooseStyle(root); err != nil {
		return false, err
	}
	node, err := encode(f)
	if err != nil {
		return false, err
	}
	functions, err := Create(root, yaml.SequenceNode, "pipeline", list)
	if err != nil {
		return false, fmt.Errorf("add the function to the Kptfile: %w", err)
	}
	content := functions.YNode()
	for i, old := range content.Content {
		// Compare full names, because an image name in a Kptfile may omit the registry of kpt's catalog.
		if ImageName(scalarField(old, "image"), "") == ImageName(f.Image, "") && scalarField(old, "exec") == f.Exec {
			content.Content[i] = node
			replaced = true
		}
	}
	if !replaced {
		content.Content = append(content.Content, node)
	}
	return replaced, nil
}

// Create returns the YAML node at a path of field names. It creates missing or empty fields. The last field gets the
// given kind, and all other fields become maps. In the last field and in empty fields, each entry has its own line.
func Create(node *yaml.RNode, kind yaml.Kind, path ...string) (*yaml.RNode, error) {
	for i, name := range path {
		want := yaml.MappingNode
		if i == len(path)-1 {
			want = kind
		}
		field := node.Field(name)
		if field == nil {
			if err := node.PipeE(yaml.SetField(name, yaml.NewRNode(&yaml.Node{Kind: want}))); err != nil {
				return nil, err
			}
			field = node.Field(name)
		}
		value := field.Value.YNode()
		if value.ShortTag() == yaml.NodeTagNull {
			value.Kind = want
			value.Tag = ""
			value.Value = ""
		}
		if value.Kind != want {
			return nil, fmt.Errorf("%s has a value of another kind", strings.Join(path[:i+1], "."))
		}
		if len(value.Content) == 0 || i == len(path)-1 {
			value.Style &^= yaml.FlowStyle
		}
		node = field.Value
	}
	return node, nil
}

func encode(f Function) (*yaml.Node, error) {
	data, err := yaml.Marshal(f)
	if err != nil {
		return nil, err
	}
	node, err := yaml.Parse(string(data))
	if err != nil {
		return nil, err
	}
	return node.YNode(), nil
}

// scalarField returns a scalar field of a map, or an empty string if the map lacks the field.
func scalarField(node *yaml.Node, field string) string {
	f := yaml.NewRNode(node).Field(field)
	if f.IsNilOrEmpty() {
		return ""
	}
	return yaml.GetValue(f.Value)
}

// ChooseStyle selects the indentation of lists before fnctl writes a Kptfile. A Kptfile with lists keeps their
// style. A Kptfile without lists gets kpt's style, which indents lists.
func ChooseStyle(root *yaml.RNode) error {
	if hasLists(root.YNode()) {
		return nil
	}
	return root.PipeE(yaml.SetAnnotation(kioutil.SeqIndentAnnotation, string(yaml.WideSequenceStyle)))
}

// hasLists reports whether the node contains a list in block style, with each item on its own line.
func hasLists(node *yaml.Node) bool {
	if node.Kind == yaml.SequenceNode && node.Style&yaml.FlowStyle == 0 && len(node.Content) > 0 {
		return true
	}
	return slices.ContainsFunc(node.Content, hasLists)
}
