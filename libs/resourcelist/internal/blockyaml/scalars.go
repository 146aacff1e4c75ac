// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// maxKey is the maximum length of a key in bytes. YAML requires the colon within 1024 characters of the key's start.
const maxKey = 1024

// findColon returns the offset of the colon after the key at data[at], or false if there is no valid key.
func (s *scanner) findColon(at int) (int, bool) {
	limit := min(s.line.end, at+maxKey)
	if c := s.data[at]; c == '"' || c == '\'' {
		end, ok := s.quoteEnd(at, limit)
		return end, ok && s.isColon(end)
	}
	if !s.plainStart(at) {
		return 0, false
	}
	for i := at; i < limit; i++ {
		if classes[s.data[i]]&inText == 0 {
			continue
		}
		if s.isColon(i) {
			return i, !isBlank(s.data[i-1])
		}
		if s.endsPlain(i) {
			return 0, false
		}
	}
	return 0, false
}

// plainStart reports whether a plain scalar may begin with data[at].
func (s *scanner) plainStart(at int) bool {
	if s.data[at] == '-' {
		return !s.isDash(at)
	}
	return classes[s.data[at]]&indicator == 0
}

// provePlain reads the first line of the plain scalar at data[at]. The scalar may continue on the next lines.
func (s *scanner) provePlain(at int) bool {
	end, ok := s.plainText(at)
	if ok {
		s.setPlain(s.data[at:end])
	}
	return ok
}

// proveContinuation reads a line that continues a plain scalar. The text of the line begins at data[at].
func (s *scanner) proveContinuation(at int) bool {
	_, ok := s.plainText(at)
	s.setScalar(nil)
	return ok
}

// plainText reads the text of a plain scalar from data[at] to the end of the line or to a comment, which also ends the
// scalar. It returns the offset after the text and its trailing blanks.
func (s *scanner) plainText(at int) (int, bool) {
	for i := at; i < s.line.end; i++ {
		if classes[s.data[i]]&inText == 0 {
			continue
		}
		if s.endsPlain(i) {
			return i, s.data[i] == '#'
		}
	}
	s.state = continuable
	return s.line.end, true
}

// isColon reports whether data[at] is a colon that ends a key. A space or the end of the line must follow.
func (s *scanner) isColon(at int) bool {
	return at < s.line.end && s.data[at] == ':' && (at+1 == s.line.end || s.data[at+1] == ' ')
}

// endsPlain reports whether the ":" or "#" at data[at] ends a plain scalar. A colon ends the scalar if a blank or the
// end of the line follows. A number sign ends it if a blank precedes.
func (s *scanner) endsPlain(at int) bool {
	if s.data[at] == ':' {
		return at+1 == s.line.end || isBlank(s.data[at+1])
	}
	return at > s.line.start && isBlank(s.data[at-1])
}

// proveQuoted reads the quoted scalar that begins at data[at]. The scalar may span several lines with any indentation.
// proveQuoted returns true if it can prove that the scalar is valid, and otherwise false.
func (s *scanner) proveQuoted(at int) bool {
	end, ok := s.quoteEnd(at, len(s.data))
	if !ok {
		return false
	}
	if end > s.line.next {
		s.moveTo(end)
		s.setScalar(nil)
		return s.endsLine(end)
	}
	text := s.data[at+1 : end-1]
	if bytes.IndexByte(text, '\\') >= 0 || bytes.IndexByte(text, '\'') >= 0 {
		text = nil
	}
	s.setScalar(text)
	return s.endsLine(end)
}

// moveTo moves to the line that contains data[at]. This line must be after the current line.
func (s *scanner) moveTo(at int) {
	start := bytes.LastIndexByte(s.data[:at], '\n') + 1
	s.line = lineAt(s.data, start)
	s.pos = s.line.next
}

// quoteEnd returns the offset of the end of the quoted scalar that begins at data[at]. The second result is false if
// the scalar may be invalid, or if its closing quote is not before data[limit].
func (s *scanner) quoteEnd(at, limit int) (int, bool) {
	double := s.data[at] == '"'
	for i := at + 1; i < limit; {
		switch c := s.data[i]; {
		case c == '\n' && isMarker(s.data[i+1:]):
			return 0, false
		case c == '"' && double:
			return i + 1, true
		case c == '\'' && !double:
			if i+1 == limit || s.data[i+1] != '\'' {
				return i + 1, true
			}
			i += 2
		case c == '\\' && double:
			size := escapeSize(s.data[i:limit])
			if size == 0 {
				return 0, false
			}
			i += size
		default:
			i++
		}
	}
	return 0, false
}

// escapeSize returns the length of the escape sequence at the start of b, or 0 if the sequence may be invalid.
func escapeSize(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '\r', '\n':
		return 1 // counts only the backslash: the caller reads the line break
	case '0', 'a', 'b', 't', '\t', 'n', 'v', 'f', 'r', 'e', ' ', '"', '\'', '\\', 'N', '_', 'L', 'P':
		return 2
	case 'x':
		return hexEscapeSize(b, 2)
	case 'u':
		return hexEscapeSize(b, 4)
	case 'U':
		return hexEscapeSize(b, 8)
	}
	return 0
}

// hexEscapeSize implements escapeSize for escape sequences with hexadecimal digits, such as \u00e9.
func hexEscapeSize(b []byte, digits int) int {
	if len(b) < 2+digits {
		return 0
	}
	value := 0
	for _, c := range b[2 : 2+digits] {
		switch {
		case c >= '0' && c <= '9':
			value = value<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			value = value<<4 | int(c|0x20-'a'+10)
		default:
			return 0
		}
	}
	if (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff {
		return 0
	}
	return 2 + digits
}

// blockScalar reads all lines of a literal or folded scalar, whose indicator, "|" or ">", is at data[at]. It returns
// false if the scalar may be invalid.
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

// blockHeader reads the first line of a block scalar, whose indicator is at data[at]. The first result is the
// indentation that the line contains, such as 2 for "|2". It is 0 if the line contains no indentation. The second
// result is false if the line may be invalid.
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

// detectIndent returns the indentation of a block scalar whose first line specifies no indentation. The scalar's first
// line of text then determines the indentation. For a scalar without text, it is parent+1, where parent is the
// indentation of the enclosing collection. detectIndent returns false if the scalar is invalid, for example because a
// blank line before the text has more spaces than the text.
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
