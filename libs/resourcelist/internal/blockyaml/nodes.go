// SPDX-License-Identifier: Apache-2.0

package blockyaml

// proveItem accepts the sequence item whose dash is at offset at.
func (s *scanner) proveItem(at int) bool {
	at, more := s.skipSpaces(at + 1)
	if !more {
		s.state = due
		return true
	}
	return s.proveNode(at)
}

// proveEntry accepts an entry of the innermost mapping. The entry's key is between the offsets at and colon.
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

// proveNode accepts the node at offset at: a collection that begins on this line, or a
// value.
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

// proveValue accepts the scalar or flow collection at offset at.
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
