// SPDX-License-Identifier: Apache-2.0

// Package blockyaml proves, in a single pass and without building anything, that bytes are a YAML document in the
// plain block style that Kubernetes tools write, and returns its top-level entries.
//
// The proof is one-sided. If [Outline] accepts a document, go.yaml.in/yaml/v3 decodes it to a mapping with exactly
// these entries. A declined document may be broken or merely unusual (anchors, tags, flow style over several lines,
// tabs in odd places, a second document): only a full decode can tell.
//
// The accepted subset is line based: every line starts a mapping entry or a sequence item, or continues a scalar. The
// indentations of the open collections form a stack, which is all the memory there is.
package blockyaml

// Type is the type of an entry's value.
type Type uint8

// The types of values. Null is a value that is left out; a null that is spelled
// out is a Scalar.
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
	// Text is the text of a scalar on its key's line without escapes, or nil for any other value.
	Text []byte
	// Lines are the lines from the key's to the next entry's: a document of its
	// own, with this entry only.
	Lines []byte
}

// Outline returns the top-level entries of a document, in its order and with keys
// that differ. It returns false if it cannot prove that the document decodes.
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
