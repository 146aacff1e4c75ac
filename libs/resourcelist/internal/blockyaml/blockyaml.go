// SPDX-License-Identifier: Apache-2.0

// Package blockyaml recognizes YAML documents in the plain block style that Kubernetes tools write, and returns the
// top-level entries of a document. It reads the document once and builds no tree, because each line in this style
// begins a mapping entry or a sequence item, or continues a scalar.
//
// If [Outline] accepts a document, go.yaml.in/yaml/v3 certainly decodes it to a mapping with exactly these entries. If
// Outline rejects a document, the document is invalid or unusual, and only a full decode can tell which. Unusual
// documents contain, for example, anchors, tags, flow style over several lines, tabs in odd places, or a second
// document.
package blockyaml

// Type is the type of an entry's value.
type Type uint8

// Types of values. The type is Null if a key has no value. If the text "null" follows the key, the type is Scalar.
const (
	Null Type = iota
	Scalar
	Mapping
	Sequence
)

// Entry is an entry of the top-level mapping. Its slices share the document's memory.
type Entry struct {
	// Key is the entry's key, without quotes.
	Key []byte
	// Type is the type of the entry's value.
	Type Type
	// Text is the text of the value if the value is a scalar on the same line as its key. Otherwise, Text is nil. It is
	// also nil if the scalar contains escape sequences.
	Text []byte
	// Lines contains all lines from this entry's key up to the next entry's key. These lines alone are a valid document.
	Lines []byte
}

// Outline returns the top-level entries of a YAML document, in the document's order. No two entries have the same key.
// The second result is true if the YAML library can certainly decode the document. It is false if the document is
// invalid or in a style that Outline does not support.
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
