// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// addEntry appends a top-level entry with the key data[at:colon]. The entry's type is Null until a value is found.
// addEntry returns false if the key contains escape sequences or is a duplicate.
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

// setType stores the type of the value that is being read, if it is the value of a top-level entry. Values inside
// of other values are not stored.
func (s *scanner) setType(typ Type) {
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Type = typ
	}
}

// setScalar stores that the value that is being read is a scalar with the given text. The text is nil if the scalar
// contains escape sequences or spans several lines.
func (s *scanner) setScalar(text []byte) {
	s.setType(Scalar)
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Text = text
	}
}

// setPlain is setScalar for a plain scalar. It removes blanks at the end of the text.
func (s *scanner) setPlain(text []byte) {
	if s.depth == 0 {
		text = bytes.TrimRight(text, " \t")
	}
	s.setScalar(text)
}
