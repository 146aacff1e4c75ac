// SPDX-License-Identifier: Apache-2.0

package blockyaml

// maxDepth is the maximum nesting of collections. YAML's own limit is far above it, and real lists are far below it.
const maxDepth = 128

// maxEntries is the maximum number of top-level entries. A ResourceList contains five.
const maxEntries = 8

// scanner reads a document line by line. A method that accepts text returns true and moves behind the text only if
// go.yaml.in/yaml/v3 certainly decodes it.
type scanner struct {
	data []byte
	pos  int  // offset of the next line
	line line // the current line

	state   state
	nested  [maxDepth]collection // the open collections below the top-level mapping
	depth   int                  // number of used elements of nested
	entries []Entry
}

// collection is a block mapping or sequence that begins at column indent. A sequence may begin at the same column as
// the mapping that contains it.
type collection struct {
	typ    Type
	indent int
}

// state describes which text must or may follow the lines so far.
type state uint8

const (
	// complete: no text; the next line begins an entry or an item.
	complete state = iota
	// due: the value of the last key or dash.
	due
	// continuable: none, but the next line may continue a plain scalar.
	continuable
)

func (s *scanner) innermost() collection {
	if s.depth == 0 {
		return collection{typ: Mapping}
	}
	return s.nested[s.depth-1]
}

// readLine accepts the current line, and the lines after it that belong to the same quoted or block scalar.
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
	case indent > s.innermost().indent:
		return (before == continuable && s.proveContinuation(at)) || (before == due && s.proveNode(at))
	case before == due && s.isDash(at) && s.innermost() == collection{typ: Mapping, indent: indent}:
		return s.openCollection(Sequence, indent) && s.proveItem(at)
	}
	return s.proveSibling(at, indent)
}

// proveSibling accepts a line that starts the next entry or item of an open collection. It closes the collections
// inside that collection.
func (s *scanner) proveSibling(at, indent int) bool {
	dash := s.isDash(at)
	for s.depth > 0 && (s.innermost().indent > indent || (s.innermost() == collection{Sequence, indent} && !dash)) {
		s.depth--
	}
	top := s.innermost()
	if top.indent != indent {
		return false
	}
	if dash {
		return top.typ == Sequence && s.proveItem(at)
	}
	colon, ok := s.findColon(at)
	return ok && top.typ == Mapping && s.proveEntry(at, colon)
}

// openCollection begins a collection at column indent.
func (s *scanner) openCollection(typ Type, indent int) bool {
	if s.depth == maxDepth {
		return false
	}
	s.setType(typ)
	s.nested[s.depth] = collection{typ, indent}
	s.depth++
	return true
}

// isDash reports whether the byte at offset at is the dash of a sequence item.
func (s *scanner) isDash(at int) bool {
	return s.data[at] == '-' && (at+1 == s.line.end || isBlank(s.data[at+1]))
}
