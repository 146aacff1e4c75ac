// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// maxDepth is the maximum nesting of collections. The YAML library permits more, but real lists need much less.
const maxDepth = 128

// maxEntries is the maximum number of top-level entries. A ResourceList contains five: apiVersion, kind, items,
// functionConfig and results.
const maxEntries = 8

// scanner reads a YAML document line by line. A method that reads a part of the document returns true if
// go.yaml.in/yaml/v3 can certainly decode this part. The scanner has then moved past the part. Otherwise, the method
// returns false.
type scanner struct {
	data []byte
	pos  int  // offset of the next line
	line line // the current line

	state   state
	nested  [maxDepth]collection // the open collections below the top-level mapping
	depth   int                  // number of used elements of nested
	entries []Entry
}

// collection is an open block mapping or sequence, which is indented by indent spaces. A sequence may have the same
// indentation as the mapping that contains it.
type collection struct {
	typ    Type
	indent int
}

// state describes the text that the scanner expects next.
type state uint8

const (
	// complete means that no value is unfinished, so that the next line must begin an entry or an item.
	complete state = iota
	// due means that the scanner has read a key or a dash, and that the value must follow.
	due
	// continuable means that the last value is a plain scalar, which the next line may continue.
	continuable
)

func (s *scanner) innermost() collection {
	if s.depth == 0 {
		return collection{typ: Mapping}
	}
	return s.nested[s.depth-1]
}

// readLine reads the current line. If a quoted or block scalar begins in this line, readLine also reads the other lines
// of the scalar. It returns true if it can prove that the lines are valid, and otherwise false.
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

// proveSibling reads a line that begins another entry or item of an open collection. It first closes the collections
// that are nested in this open collection. It returns true if it can prove that the line is valid, and otherwise false.
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

// openCollection adds a collection to the open collections. It returns false if maxDepth collections are already open.
func (s *scanner) openCollection(typ Type, indent int) bool {
	if s.depth == maxDepth {
		return false
	}
	s.setType(typ)
	s.nested[s.depth] = collection{typ, indent}
	s.depth++
	return true
}

// isDash reports whether data[at] is a dash that begins a sequence item.
func (s *scanner) isDash(at int) bool {
	return s.data[at] == '-' && (at+1 == s.line.end || isBlank(s.data[at+1]))
}

// line describes a line of the document. Its fields are offsets in the document.
type line struct {
	start int // offset of the first byte
	text  int // offset of the first byte that is not a space
	end   int // offset after the last byte that is neither space nor line break
	next  int // offset of the first byte of the next line
}

// indent returns the number of spaces at the start of the line.
func (l line) indent() int { return l.text - l.start }

// blank reports whether the line contains only spaces.
func (l line) blank() bool { return l.text == l.end }

// lineAt returns the line that begins at offset start.
func lineAt(data []byte, start int) line {
	l := line{start: start, text: start, end: len(data), next: len(data)}
	if n := bytes.IndexByte(data[start:], '\n'); n >= 0 {
		l.end = start + n
		l.next = start + n + 1
	}
	if l.end > start && data[l.end-1] == '\r' {
		l.end--
	}
	for l.text < l.end && data[l.text] == ' ' {
		l.text++
	}
	for l.end > l.text && data[l.end-1] == ' ' {
		l.end--
	}
	return l
}

// skipStart skips a byte order mark and a first line "---", if the document begins with them.
func (s *scanner) skipStart() {
	s.pos = len(s.data) - len(bytes.TrimPrefix(s.data, []byte(string(byteOrderMark))))
	first := lineAt(s.data, s.pos)
	if string(s.data[first.start:first.end]) == "---" {
		s.pos = first.next
	}
}

// nextLine moves to the next line that is not blank. It returns false at the end of the document.
func (s *scanner) nextLine() bool {
	for s.pos < len(s.data) {
		s.line = lineAt(s.data, s.pos)
		s.pos = s.line.next
		if !s.line.blank() {
			return true
		}
	}
	return false
}

// skipSpaces skips the spaces after an indicator such as ":" or "-", and returns the offset of the next text. It
// returns false if the rest of the line is empty or a comment.
func (s *scanner) skipSpaces(at int) (int, bool) {
	begin := at
	for at < s.line.end && s.data[at] == ' ' {
		at++
	}
	comment := at > begin && at < s.line.end && s.data[at] == '#'
	return at, at < s.line.end && !comment
}

// endsLine reports whether the rest of the line, beginning at data[at], is empty or a comment.
func (s *scanner) endsLine(at int) bool {
	_, more := s.skipSpaces(at)
	return !more
}
