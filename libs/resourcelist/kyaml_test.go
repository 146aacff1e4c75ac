// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// stricter are the reasons for which Parse rejects lists that kyaml reads: words of the
// error, and why it does.
var stricter = []struct{ words, reason string }{
	{"is not UTF-8", "kyaml reads UTF-16 as well, and messages have texts in UTF-8"},
	{"a second document begins", "kyaml stops at the end of the first, or takes the list for one resource among others"},
	{"read what follows the list", "likewise: what follows is a document that is broken"},
	{"occurs twice", "kyaml takes the first, and the others would be lost"},
	{"functionConfig is", "kyaml hands any shape to the function"},
	{"has the tag !!null", "kyaml reads tagged items, but no tagged results"},
	{"items is", "kyaml takes whatever is inside for items, or nothing"},
	{"results is", "kyaml hands any shape to readers of the results"},
	{"a top-level key is", "kyaml never looks at keys that are no strings"},
	{"with its aliases expanded", "kyaml does not expand aliases: readers of the items would"},
	{"the list has about", "kyaml has no bound for values"},
	{"lines begin with %TAG", "kyaml has no bound for directives"},
	{"results, and may be", "kyaml has no bound for results"},
	{"a mapping has", "kyaml has no bound for keys"},
	{"stands inside its own anchor", "likewise"},
}

// isStricter reports whether Parse rejects for a reason that kyaml does not know.
func isStricter(err error) bool {
	for _, s := range stricter {
		if strings.Contains(err.Error(), s.words) {
			return true
		}
	}
	return false
}

// errNoList is a document that kyaml reads, and not as a list.
var errNoList = errors.New("kyaml takes it for a resource")

// kyamlSplits finds the lines where kyaml begins another document.
var kyamlSplits = regexp.MustCompile(`\n---.*\r?\n`)

// kyamlResult is a result as kyaml's framework for functions declares it, with the fields of
// old SDKs that kpt reads. The framework itself would bring Kubernetes' validation along.
type kyamlResult struct {
	Message     string `yaml:"message,omitempty"`
	Severity    string `yaml:"severity,omitempty"`
	ResourceRef *struct {
		kyaml.ResourceIdentifier `yaml:",inline"`
		Metadata                 kyaml.ResourceIdentifier `yaml:"metadata"`
	} `yaml:"resourceRef,omitempty"`
	Field *struct {
		Path           string `yaml:"path,omitempty"`
		CurrentValue   any    `yaml:"currentValue,omitempty"`
		ProposedValue  any    `yaml:"proposedValue,omitempty"`
		SuggestedValue any    `yaml:"suggestedValue"`
	} `yaml:"field,omitempty"`
	File *struct {
		Path  string `yaml:"path,omitempty"`
		Index int    `yaml:"index,omitempty"`
	} `yaml:"file,omitempty"`
	Tags map[string]string `yaml:"tags,omitempty"`
}

// readWithKyaml returns the results of a list as kpt and Porch read it.
func readWithKyaml(document []byte) (results []resourcelist.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kyaml panics: %v", p)
		}
	}()
	reader := kio.ByteReader{Reader: bytes.NewReader(document), OmitReaderAnnotations: true}
	nodes, err := reader.Read()
	if err != nil {
		return nil, err
	}
	value := reader.Results
	if reader.WrappingKind == "" {
		// A list without items and function configuration (a list all the same).
		if kyamlSplits.Match(document) || len(nodes) != 1 || !isBareList(nodes[0]) {
			return nil, errNoList
		}
		if field := nodes[0].Field("results"); field != nil {
			value = field.Value
		}
	} else if reader.WrappingKind != "ResourceList" {
		return nil, errNoList
	}
	return decodeWithKyaml(value)
}

// decodeWithKyaml decodes results, in a sequence or, as old functions write them, in the
// items of a mapping.
func decodeWithKyaml(value *kyaml.RNode) ([]resourcelist.Result, error) {
	if value != nil && value.YNode().Kind == kyaml.MappingNode {
		field := value.Field("items")
		if field == nil {
			return nil, nil
		}
		value = field.Value
	}
	if kyaml.IsMissingOrNull(value) {
		return nil, nil
	}
	var wire []kyamlResult
	if err := value.YNode().Decode(&wire); err != nil {
		return nil, err
	}
	var results []resourcelist.Result
	for _, w := range wire {
		results = append(results, w.result())
	}
	return results, nil
}

// isBareList reports whether a node is a list without items and function configuration.
func isBareList(node *kyaml.RNode) bool {
	meta, _ := node.GetMeta() // as the reader of lists, it ignores a kind that is tagged as null
	return meta.Kind == "ResourceList" && node.Field("items") == nil && node.Field("functionConfig") == nil
}

func (w kyamlResult) result() resourcelist.Result {
	r := resourcelist.Result{Message: w.Message, Severity: w.Severity, Tags: w.Tags}
	if ref := w.ResourceRef; ref != nil {
		r.ResourceRef = &resourcelist.ResourceRef{
			APIVersion: ref.APIVersion,
			Kind:       ref.Kind,
			Namespace:  cmp.Or(ref.Metadata.Namespace, ref.Namespace),
			Name:       cmp.Or(ref.Metadata.Name, ref.Name),
		}
	}
	if field := w.Field; field != nil {
		r.Field = &resourcelist.Field{
			Path:          field.Path,
			CurrentValue:  resourcelist.AsJSON(field.CurrentValue),
			ProposedValue: cmp.Or(resourcelist.AsJSON(field.SuggestedValue), resourcelist.AsJSON(field.ProposedValue)),
		}
	}
	if file := w.File; file != nil {
		r.File = &resourcelist.File{Path: file.Path, Index: file.Index}
	}
	return r
}
