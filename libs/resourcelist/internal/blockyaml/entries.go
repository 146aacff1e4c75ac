// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// addEntry records the top-level entry whose key stands at offset at and ends before
// colon. Its type is Null until a value is found.
func (s *scanner) addEntry(at, colon int) bool {
	key := s.data[at:colon]
	if quote := key[0]; quote == '"' || quote == '\'' {
		key = key[1 : len(key)-1]
		if bytes.IndexByte(key, '\\') >= 0 || bytes.IndexByte(key, '\'') >= 0 {
			return false
		}
	}
	for i := range s.entries {
		if bytes.Equal(s.entries[i].Key, key) {
			return false
		}
	}
	if n := len(s.entries); n == maxEntries {
		return false
	} else if n > 0 {
		last := &s.entries[n-1]
		last.Lines = last.Lines[:len(last.Lines)-len(s.data[s.line.start:])]
	}
	s.entries = append(s.entries, Entry{Key: key, Lines: s.data[s.line.start:]})
	return true
}

// setType records the type of the current top-level entry, if the value at hand is
// that entry's.
func (s *scanner) setType(typ Type) {
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Type = typ
	}
}

// setScalar records that the value at hand is a scalar: text, or a more complicated
// one if text is nil.
func (s *scanner) setScalar(text []byte) {
	s.setType(Scalar)
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Text = text
	}
}

// setPlain records that the value at hand is a plain scalar: text, but for the blanks
// at its end.
func (s *scanner) setPlain(text []byte) {
	if s.depth == 0 {
		text = bytes.TrimRight(text, " \t")
	}
	s.setScalar(text)
}
