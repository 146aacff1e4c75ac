// SPDX-License-Identifier: Apache-2.0

package blockyaml

import "bytes"

// line describes a line of the document. Its fields are offsets in the document.
type line struct {
	start int // the first byte
	text  int // the first byte that is not a space
	end   int // past the last byte that is neither space nor line break
	next  int // the first byte of the next line
}

// indent returns the line's indentation: the number of leading spaces.
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

// skipSpaces skips the spaces from data[at] on, which follow an indicator such as ":" or "-". It returns the offset
// of the next text, and false if the rest of the line is empty or a comment.
func (s *scanner) skipSpaces(at int) (int, bool) {
	begin := at
	for at < s.line.end && s.data[at] == ' ' {
		at++
	}
	comment := at > begin && at < s.line.end && s.data[at] == '#'
	return at, at < s.line.end && !comment
}

// endsLine reports whether the rest of the line, from data[at] on, is empty or a comment.
func (s *scanner) endsLine(at int) bool {
	_, more := s.skipSpaces(at)
	return !more
}
