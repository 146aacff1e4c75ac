// SPDX-License-Identifier: Apache-2.0

package blockyaml

// blockScalar reads a literal or folded scalar with all its lines. The scalar's indicator, "|" or ">", is data[at].
// It returns false if the scalar may be invalid.
func (s *scanner) blockScalar(at int) bool {
	given, ok := s.blockHeader(at)
	if !ok {
		return false
	}
	s.setScalar(nil)
	parent := s.innermost().indent
	indent := parent + given
	if given == 0 {
		if indent, ok = s.detectIndent(parent); !ok {
			return false
		}
	}
	for s.pos < len(s.data) {
		l := lineAt(s.data, s.pos)
		if !l.blank() && l.indent() < indent {
			return s.data[l.text] != '\t'
		}
		s.pos = l.next
	}
	return true
}

// blockHeader reads the first line of a block scalar, whose indicator is data[at]. It returns the indentation that
// this line specifies, as in "|2", or 0 if it specifies none. It returns false if the line may be invalid.
func (s *scanner) blockHeader(at int) (int, bool) {
	given, chomped := 0, false
	for at++; at < s.line.end; at++ {
		switch c := s.data[at]; {
		case c >= '1' && c <= '9' && given == 0:
			given = int(c - '0')
		case (c == '+' || c == '-') && !chomped:
			chomped = true
		default:
			return given, s.endsLine(at)
		}
	}
	return given, true
}

// detectIndent returns the indentation of a block scalar whose first line does not specify it: the indentation of
// the first line that is not blank. If an earlier blank line is indented more, the scalar is invalid and
// detectIndent returns false. If the scalar is empty, it returns the indentation parent+1.
func (s *scanner) detectIndent(parent int) (int, bool) {
	most := 0
	for pos := s.pos; pos < len(s.data); {
		l := lineAt(s.data, pos)
		switch {
		case l.blank():
			most = max(most, l.indent())
		case s.data[l.text] == '\t':
			return 0, false
		case l.indent() <= parent:
			return parent + 1, true
		default:
			return l.indent(), l.indent() >= most
		}
		pos = l.next
	}
	return parent + 1, true
}
