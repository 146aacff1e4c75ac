package resourcelist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// decode returns the envelope of any list, by way of all its nodes.
func decode(data []byte) (Envelope, error) {
	root, err := decodeDocument(data)
	if err != nil {
		return Envelope{}, err
	}
	fields, err := topLevel(root)
	if err != nil {
		return Envelope{}, err
	}
	if err := checkKind(fields["kind"]); err != nil {
		return Envelope{}, err
	}
	if err := checkShape("functionConfig", fields["functionConfig"], yaml.MappingNode); err != nil {
		return Envelope{}, err
	}
	if err := checkShape("items", fields["items"], yaml.SequenceNode); err != nil {
		return Envelope{}, err
	}
	results, err := decodeResults(fields["results"])
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{Results: results}, nil
}

// decodeDocument returns the root of the one document in data, whose aliases are
// known to be bearable.
func decodeDocument(data []byte) (*yaml.Node, error) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, fmt.Errorf("byte %d is not UTF-8: write the list as UTF-8", at)
	}
	var document, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	switch err := documents.Decode(&document); {
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
	if line := lateMarker(data); line > 0 {
		return nil, fmt.Errorf("line %d begins with ---, which kyaml takes for the end of a document: remove it, and directives before it", line)
	}
	if err := checkAliases(&document, len(data)); err != nil {
		return nil, err
	}
	return document.Content[0], nil
}

// lateMarker returns the number of a line, other than the first, that begins as a
// document's marker does; 0 if there is none. To YAML it may belong to the one document:
// comments and directives may precede it. kyaml looks at lines alone.
func lateMarker(data []byte) int {
	at := bytes.Index(data, []byte("\n---"))
	if at < 0 || bytes.IndexByte(data[at+1:], '\n') < 0 {
		return 0
	}
	return bytes.Count(data[:at+1], []byte("\n")) + 1
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, -1 if all is.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}
