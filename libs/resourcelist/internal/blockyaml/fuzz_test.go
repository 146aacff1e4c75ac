// SPDX-License-Identifier: Apache-2.0

package blockyaml_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"
)

// FuzzOutline holds the package's promise on arbitrary bytes.
func FuzzOutline(f *testing.F) {
	for _, tc := range proven {
		f.Add([]byte(tc.document))
	}
	for _, tc := range declined {
		f.Add([]byte(tc.document))
	}
	f.Fuzz(func(t *testing.T, document []byte) { checkPromise(t, document) })
}

// FuzzOutlineFragments does the same on documents that are put together from
// fragments of YAML, one for each byte: far more of them are nearly valid.
func FuzzOutlineFragments(f *testing.F) {
	seeds := 0
	for _, tc := range slices.Concat(proven, declined) {
		if picks, ok := pick(tc.document); ok {
			f.Add(picks)
			seeds++
		}
	}
	if seeds == 0 {
		f.Fatal("no seed can be put together from the fragments")
	}
	f.Fuzz(func(t *testing.T, picks []byte) {
		var document []byte
		for _, p := range picks {
			document = append(document, fragments[int(p)%len(fragments)]...)
		}
		checkPromise(t, document)
	})
}

// fragments are what FuzzOutlineFragments puts documents together from.
var fragments = []string{
	"\n", "\n ", "\n  ", "\n    ", "\n- ", "\n  - ", "\n#", "\n  # c\n", "\n\n", "\r\n", "\n---", "\n...", "\n  \n",
	" ", "  ", "\t", "- ", "-", ": ", ":", "? ", "?", ",", ", ", "# c", " # c", "#",
	"a", "b c", "k: ", "k:", "k: v", "kind: ", "items:", "\"k\": ", "'k': ", "<<: ", "-k: ", "0", "é", "~", "null", ".",
	"|", ">", "|-", ">+", "|2", "|1-", "'", "''", "\"", "\\", "\\n", "\\u00e9", "\\ud800", "\\/", "\\\n",
	"{}", "[]", "{", "}", "[", "]", "{a: b}", "[a, 'b']", "\"a\"", "'a'", "\"a\n b\"", "'a\n\n  b'",
	"&a ", "*a", "!t ", "!!str ", "%", "%YAML 1.1\n", "@", "`", "=",
	"\r", "\ufeff", "\u0085", "\u2028", "\ufffe", "\x00", "\x7f", "\xff", "\U0001F600",
	strings.Repeat("x", 1000), strings.Repeat(" ", 520), strings.Repeat("y", 30), strings.Repeat("- ", 60),
	strings.Repeat("\n", 520),
}

// pick returns fragments that make up the document, longest first, but for letters.
func pick(document string) (picks []byte, ok bool) {
	for document != "" {
		best := -1
		for i, fragment := range fragments {
			if strings.HasPrefix(document, fragment) && (best < 0 || len(fragment) > len(fragments[best])) {
				best = i
			}
		}
		if letter := document[0] | 0x20; best < 0 && letter >= 'b' && letter <= 'z' {
			document = "a" + document[1:]
			continue
		}
		if best < 0 {
			return nil, false
		}
		picks = append(picks, byte(best))
		document = document[len(fragments[best]):]
	}
	return picks, true
}

// checkPromise compares an accepted document's outline with its full decode.
func checkPromise(t *testing.T, document []byte) {
	t.Helper()
	entries, ok := blockyaml.Outline(document)
	if !ok {
		return
	}
	root, err := decode(document)
	if err != nil {
		t.Fatalf("Outline accepts what does not decode: %v\n%q", err, document)
	}
	if root.Kind != yaml.MappingNode || len(root.Content) != 2*len(entries) {
		t.Fatalf("Outline has %d entries, the document %d nodes of kind %d\n%q",
			len(entries), len(root.Content), root.Kind, document)
	}
	for i, entry := range entries {
		key, value := root.Content[2*i], root.Content[2*i+1]
		if string(entry.Key) != key.Value || entry.Type != typeOf(value) {
			t.Fatalf("entry %q has type %d, the document %q with %+v\n%q", entry.Key, entry.Type, key.Value, value, document)
		}
		if entry.Text != nil && string(entry.Text) != value.Value {
			t.Fatalf("entry %q has text %q, the document %q\n%q", entry.Key, entry.Text, value.Value, document)
		}
		alone, err := decode(entry.Lines)
		if err != nil {
			t.Fatalf("the lines of entry %q do not decode alone: %v\n%q", entry.Key, err, document)
		}
		if got, want := render(alone.Content[1]), render(value); got != want {
			t.Fatalf("entry %q alone is %s, in the document %s\n%q", entry.Key, got, want, document)
		}
	}
}

// decode decodes the only document in data.
func decode(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not one document: %w", err)
	}
	return document.Content[0], nil
}

// typeOf returns the type of a node as an outline gives it.
func typeOf(node *yaml.Node) blockyaml.Type {
	switch {
	case node.Kind == yaml.MappingNode:
		return blockyaml.Mapping
	case node.Kind == yaml.SequenceNode:
		return blockyaml.Sequence
	case node.Style == 0 && node.Value == "":
		return blockyaml.Null
	}
	return blockyaml.Scalar
}

// render returns the node's content without its position and comments.
func render(node *yaml.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%d %s %q", node.Kind, node.Tag, node.Value)
	for _, child := range node.Content {
		b.WriteString(render(child))
	}
	b.WriteString(")")
	return b.String()
}
