// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// proveItem reads the first line of a sequence item, whose dash is at data[at]. Like all methods whose names begin
// with "prove", it returns false if the text may be invalid.
func (s *scanner) proveItem(at int) bool {
	at, more := s.skipSpaces(at + 1)
	if !more {
		s.state = due
		return true
	}
	return s.proveNode(at)
}

// proveEntry reads an entry of the innermost open mapping. The entry's key is data[at:colon]. proveEntry returns true
// if it can prove that the entry is valid, and otherwise false.
func (s *scanner) proveEntry(at, colon int) bool {
	if s.depth == 0 && !s.addEntry(at, colon) {
		return false
	}
	at, more := s.skipSpaces(colon + 1)
	if !more {
		s.state = due
		return true
	}
	return s.proveValue(at)
}

// proveNode reads the value at data[at]. If the value is a mapping or a sequence, it reads only the value's first line.
// It returns true if it can prove that the text is valid, and otherwise false.
func (s *scanner) proveNode(at int) bool {
	column := at - s.line.start
	if s.isDash(at) {
		return s.openCollection(Sequence, column) && s.proveItem(at)
	}
	if colon, ok := s.findColon(at); ok {
		return s.openCollection(Mapping, column) && s.proveEntry(at, colon)
	}
	return s.proveValue(at)
}

// proveValue proves that the scalar or flow collection at data[at] is valid. It returns false if it finds no proof.
func (s *scanner) proveValue(at int) bool {
	switch c := s.data[at]; c {
	case '"', '\'':
		return s.proveQuoted(at)
	case '|', '>':
		return s.blockScalar(at)
	case '[', '{':
		return s.proveFlow(at)
	default:
		return s.plainStart(at) && s.provePlain(at)
	}
}

// addEntry appends a top-level entry with the key data[at:colon]. The entry has the type Null until the scanner finds
// a value. addEntry returns false if the key contains escape sequences or is a duplicate.
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

// setType stores the type of the current value. It ignores values below the top level.
func (s *scanner) setType(typ Type) {
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Type = typ
	}
}

// setScalar stores the text of the current value, which is a scalar. Callers must pass nil if the scalar contains
// escape sequences or spans several lines.
func (s *scanner) setScalar(text []byte) {
	s.setType(Scalar)
	if s.depth == 0 {
		s.entries[len(s.entries)-1].Text = text
	}
}

// setPlain calls setScalar with the text of a plain scalar, without blanks at its end.
func (s *scanner) setPlain(text []byte) {
	if s.depth == 0 {
		text = bytes.TrimRight(text, " \t")
	}
	s.setScalar(text)
}
