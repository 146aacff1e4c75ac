// SPDX-License-Identifier: Apache-2.0

package blockyaml

// maxKey is the maximum length of a key in bytes. YAML requires that the colon follows within 1024 characters.
const maxKey = 1024

// findColon returns the offset of the colon after the key at data[at], and false if there is no valid key.
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

// proveContinuation reads a further line of a plain scalar. The line's text begins at data[at].
func (s *scanner) proveContinuation(at int) bool {
	_, ok := s.plainText(at)
	s.setScalar(nil)
	return ok
}

// plainText reads the text of a plain scalar from data[at] to the end of the line. It returns the offset of the
// text's end, after trailing blanks. A comment ends the text and the scalar.
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

// isColon reports whether data[at] is a colon that ends a key: a space or the end of the line must follow.
func (s *scanner) isColon(at int) bool {
	return at < s.line.end && s.data[at] == ':' && (at+1 == s.line.end || s.data[at+1] == ' ')
}

// endsPlain reports whether data[at], which is ":" or "#", terminates a plain scalar. A colon does so before a
// blank, and a number sign after a blank.
func (s *scanner) endsPlain(at int) bool {
	if s.data[at] == ':' {
		return at+1 == s.line.end || isBlank(s.data[at+1])
	}
	return at > s.line.start && isBlank(s.data[at-1])
}
