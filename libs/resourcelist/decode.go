// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// decodeList decodes a whole ResourceList and returns its results. It is slow, and we use it only for lists that
// outlineList does not recognize.
func decodeList(ctx context.Context, data []byte) ([]Result, error) {
	document, fields, err := decodeFields(ctx, data)
	if err != nil {
		return nil, err
	}
	err = cmp.Or(checkKind(fields["kind"]), checkShape("functionConfig", fields["functionConfig"], yaml.MappingNode),
		checkShape("items", fields["items"], yaml.SequenceNode))
	if err != nil {
		return nil, err
	}
	return document.decodeResultsField(ctx, fields["results"])
}

// decodeFields decodes the YAML document in data, and returns the document and its top-level fields.
func decodeFields(ctx context.Context, data []byte) (document, map[string]*yaml.Node, error) {
	d, err := decodeDocument(ctx, data)
	if err != nil {
		return document{}, nil, err
	}
	fields, err := topLevel(d.root)
	return d, fields, err
}

// document is a decoded YAML document with checked aliases.
type document struct {
	root    *yaml.Node
	size    int // size of the document in bytes
	aliases measure
}

// decodeDocument decodes data, which must be a single YAML document, and checks its aliases.
func decodeDocument(ctx context.Context, data []byte) (document, error) {
	node, err := decodeNodes(ctx, data)
	if ctx.Err() != nil {
		return document{}, ctx.Err()
	}
	if err != nil {
		return document{}, err
	}
	if line := lateMarker(data); line > 0 {
		return document{}, fmt.Errorf("line %d begins with ---, which kyaml takes for the end of a document: "+
			"remove it, and directives before it", line)
	}
	aliases, err := measureAliases(node, len(data))
	return document{root: node.Content[0], size: len(data), aliases: aliases}, err
}

// decodeNodes decodes data to YAML nodes. It returns an error if data contains no document or more than one.
func decodeNodes(ctx context.Context, data []byte) (*yaml.Node, error) {
	var first, second yaml.Node
	documents := yaml.NewDecoder(&interruptible{ctx: ctx, from: bytes.NewReader(data)})
	switch err := documents.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("there is no document: want a mapping with kind: " + kind)
	case err != nil:
		return nil, fmt.Errorf("read as YAML: %w", err)
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("a second document begins at line %d: a list is one document, so remove the others",
			second.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("read what follows the list as YAML: %w", err)
	}
	return &first, nil
}

// interruptible is a reader that returns an error after its context is canceled. The YAML library reads a list
// gradually while it creates nodes. A decode therefore stops within some hundred bytes after the cancellation.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // io.Reader passes no context
	from io.Reader
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// lateMarker returns the number of the first line after line 1 that begins with "---". It returns 0 if there is no such
// line. YAML allows this document marker after comments or directives at the start of a document. But kyaml would end a
// document at the marker, and read the list as two documents.
func lateMarker(data []byte) int {
	at := bytes.Index(data, []byte("\n---"))
	if at < 0 || bytes.IndexByte(data[at+1:], '\n') < 0 {
		return 0
	}
	return bytes.Count(data[:at+1], []byte("\n")) + 1
}

// checkUTF8 returns an error that wraps ErrNotUTF8 if data is not valid UTF-8.
func checkUTF8(data []byte) error {
	if utf8.Valid(data) {
		return nil
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return fmt.Errorf("byte %d %w: write the list as UTF-8", i, ErrNotUTF8)
		}
		i += size
	}
}

// topLevel returns the values of a mapping by key. It returns an error if a key occurs twice or is not a string. A
// mapping or sequence with the tag !!null is also an error, because YAML readers disagree on its value.
func topLevel(root *yaml.Node) (map[string]*yaml.Node, error) {
	if root.Kind != yaml.MappingNode || isNull(root) {
		return nil, fmt.Errorf("the document is %s, want a mapping with kind: %s", describeKind(root), kind)
	}
	fields := make(map[string]*yaml.Node, len(root.Content)/2)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a top-level key is %s, want a string", key.Line, describeKind(key))
		}
		if _, ok := fields[key.Value]; ok {
			return nil, fmt.Errorf("line %d: the top-level key %q occurs twice: remove one", key.Line, key.Value)
		}
		if isNull(value) && value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the value of %q has the tag !!null: remove the tag", value.Line, key.Value)
		}
		fields[key.Value] = value
	}
	return fields, nil
}

// checkKind returns an error unless the value of the field "kind" is "ResourceList".
func checkKind(value *yaml.Node) error {
	switch {
	case value == nil:
		return fmt.Errorf("kind is missing, want %s", kind)
	case value.Kind != yaml.ScalarNode || isNull(value):
		return fmt.Errorf("line %d: kind is %s, want %s", value.Line, describeKind(value), kind)
	case value.Value != kind:
		return fmt.Errorf("line %d: kind is %q, want %s", value.Line, value.Value, kind)
	}
	return nil
}

// checkShape returns an error if the named field has another YAML kind than want. Missing and null values are valid.
func checkShape(name string, value *yaml.Node, want yaml.Kind) error {
	if isNull(value) || value.Kind == want {
		return nil
	}
	wanted := describeKind(&yaml.Node{Kind: want})
	return fmt.Errorf("line %d: %s is %s, want %s", value.Line, name, describeKind(value), wanted)
}

// isNull reports whether a value is missing or tagged as null. Like kyaml, it ignores the value's content.
func isNull(value *yaml.Node) bool { return value == nil || value.Tag == "!!null" }

func describeKind(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "null"
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a sequence"
	case node.Kind == yaml.AliasNode:
		return "an alias (*" + node.Value + ")"
	}
	return "a scalar"
}
