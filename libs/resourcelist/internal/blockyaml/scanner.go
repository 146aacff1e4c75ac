// SPDX-License-Identifier: Apache-2.0

package blockyaml

// maxDepth bounds the collections inside each other. YAML's own bound is far above;
// real lists stay far below.
const maxDepth = 128

// maxEntries bounds the top-level entries; a ResourceList has five.
const maxEntries = 8

// scanner reads a document line by line.
type scanner struct {
	data []byte
	pos  int  // where the next line begins
	line line // the current line

	state   state
	nested  [maxDepth]collection // the open collections below the top-level mapping
	depth   int                  // how many of nested are in use
	entries []Entry
}

// collection is a block mapping or sequence whose entries begin at column indent.
// A sequence may have the indentation of the mapping that it is a value of.
type collection struct {
	typ    Type
	indent int
}

// state is what the text before a line still needs.
type state uint8

const (
	// complete: nothing; the line begins an entry or an item.
	complete state = iota
	// due: a value for the last key or dash.
	due
	// continuable: possibly more lines of a plain scalar.
	continuable
)

// top returns the innermost open collection.
func (s *scanner) top() collection {
	if s.depth == 0 {
		return collection{typ: Mapping}
	}
	return s.nested[s.depth-1]
}

// readLine proves the current line, and those after it that its value extends to.
func (s *scanner) readLine() bool {
	at, indent, before := s.line.text, s.line.indent(), s.state
	s.state = complete
	switch {
	case s.data[at] == '#':
		if before == due {
			s.state = due
		}
		return true
	case s.data[at] == '\t', indent == 0 && isMarker(s.data[at:]):
		return false
	case indent > s.top().indent:
		return before == continuable && s.continuation(at) || before == due && s.node(at)
	case before == due && s.isDash(at) && s.top() == collection{typ: Mapping, indent: indent}:
		return s.open(Sequence, indent) && s.item(at)
	}
	return s.sibling(at, indent)
}

// sibling proves a line that begins the next entry or item of an open collection,
// and so ends those inside it.
func (s *scanner) sibling(at, indent int) bool {
	dash := s.isDash(at)
	for s.depth > 0 && (s.top().indent > indent || s.top() == collection{Sequence, indent} && !dash) {
		s.depth--
	}
	top := s.top()
	if top.indent != indent {
		return false
	}
	if dash {
		return top.typ == Sequence && s.item(at)
	}
	colon, ok := s.key(at)
	return ok && top.typ == Mapping && s.entry(at, colon)
}

// open begins a collection at column indent.
func (s *scanner) open(typ Type, indent int) bool {
	if s.depth == maxDepth {
		return false
	}
	s.setType(typ)
	s.nested[s.depth] = collection{typ, indent}
	s.depth++
	return true
}

// isDash reports whether the dash of a sequence item stands at offset at.
func (s *scanner) isDash(at int) bool {
	return s.data[at] == '-' && (at+1 == s.line.end || isBlank(s.data[at+1]))
}
