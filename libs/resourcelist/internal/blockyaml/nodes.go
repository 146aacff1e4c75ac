// SPDX-License-Identifier: Apache-2.0

package blockyaml

// item proves the sequence item whose dash stands at offset at.
func (s *scanner) item(at int) bool {
	at, more := s.skipSpaces(at + 1)
	if !more {
		s.state = due
		return true
	}
	return s.node(at)
}

// entry proves the entry of the innermost mapping whose key stands at offset at and
// ends before colon.
func (s *scanner) entry(at, colon int) bool {
	if s.depth == 0 && !s.addEntry(at, colon) {
		return false
	}
	at, more := s.skipSpaces(colon + 1)
	if !more {
		s.state = due
		return true
	}
	return s.value(at)
}

// node proves the node at offset at: a collection that begins on this line, or a
// value.
func (s *scanner) node(at int) bool {
	column := at - s.line.start
	if s.isDash(at) {
		return s.open(Sequence, column) && s.item(at)
	}
	if colon, ok := s.key(at); ok {
		return s.open(Mapping, column) && s.entry(at, colon)
	}
	return s.value(at)
}

// value proves the scalar or flow collection at offset at.
func (s *scanner) value(at int) bool {
	switch c := s.data[at]; c {
	case '"', '\'':
		return s.quoted(at)
	case '|', '>':
		return s.blockScalar(at)
	case '[', '{':
		return s.flow(at)
	default:
		return s.plainStart(at) && s.plain(at)
	}
}
