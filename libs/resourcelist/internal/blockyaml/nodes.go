// SPDX-License-Identifier: Apache-2.0

package blockyaml

// proveItem reads the first line of a sequence item, whose dash is data[at]. Like all methods whose names begin
// with "prove", it returns false if the text may be invalid.
func (s *scanner) proveItem(at int) bool {
	at, more := s.skipSpaces(at + 1)
	if !more {
		s.state = due
		return true
	}
	return s.proveNode(at)
}

// proveEntry reads an entry of the innermost open mapping. The entry's key is data[at:colon]. It returns false if
// the entry may be invalid.
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

// proveNode reads a value that begins at data[at]. The value may be a mapping or a sequence, whose first line is
// the current line. It returns false if the value may be invalid.
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

// proveValue reads the scalar or flow collection at data[at]. It returns false if the value may be invalid.
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
