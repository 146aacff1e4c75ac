// SPDX-License-Identifier: Apache-2.0

// Package blockyaml proves that bytes are a YAML document in the plain block style that Kubernetes tools write, and
// returns the document's top-level entries. It needs a single pass and builds no tree.
//
// The proof is one-sided. If [Outline] accepts a document, go.yaml.in/yaml/v3 decodes it to a mapping with exactly
// these entries. If it declines a document, the document may be invalid, or valid but unusual (anchors, tags, flow
// style over several lines, tabs in odd places, a second document). Only a full decode can tell.
//
// The accepted subset is line based: every line starts a mapping entry or a sequence item, or continues a scalar. The
// only state is a stack with the indentations of the open collections.
package blockyaml

// Type is the type of an entry's value.
type Type uint8

// The types of values. Null is a missing value. The value "null" is a Scalar.
const (
	Null Type = iota
	Scalar
	Mapping
	Sequence
)

// Entry is an entry of the top-level mapping. Its slices point into the document.
type Entry struct {
	// Key is the entry's key, without quotes.
	Key []byte
	// Type is the type of the entry's value.
	Type Type
	// Text is the text of a scalar without escapes that is on the same line as its key. It is nil for all other
	// values.
	Text []byte
	// Lines contains the lines from the key up to the next entry. They form a document with only this entry.
	Lines []byte
}

// Outline returns the top-level entries of a document, in the document's order. Their keys are unique. Outline
// returns false if it cannot prove that the document decodes.
func Outline(data []byte) ([]Entry, bool) {
	if !isPrintable(data) {
		return nil, false
	}
	s := scanner{data: data, entries: make([]Entry, 0, maxEntries)}
	s.skipStart()
	for s.nextLine() {
		if !s.readLine() {
			return nil, false
		}
	}
	return s.entries, len(s.entries) > 0
}
