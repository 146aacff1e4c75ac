// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// proveQuoted reads the quoted scalar that begins at data[at]. The scalar may span several lines with any
// indentation. It returns false if the scalar may be invalid.
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

// moveTo moves to the line that contains data[at], which must be after the current line.
func (s *scanner) moveTo(at int) {
	start := bytes.LastIndexByte(s.data[:at], '\n') + 1
	s.line = lineAt(s.data, start)
	s.pos = s.line.next
}

// quoteEnd returns the offset of the end of the quoted scalar that begins at data[at]. It returns false if the
// scalar may be invalid, or does not end before data[limit].
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

// escapeSize returns the length of the escape sequence at the start of b, or 0 if it may be invalid.
func escapeSize(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '\r', '\n':
		return 1 // the backslash; the caller reads the line break
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

// hexEscapeSize implements escapeSize for escape sequences with hexadecimal digits, such as \u00e9. Digits is the
// required number of digits.
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
