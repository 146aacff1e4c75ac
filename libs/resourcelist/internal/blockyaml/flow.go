// SPDX-License-Identifier: Apache-2.0

package blockyaml

// maxFlow is the maximum size of a flow collection in bytes. It ensures that no key in the collection is longer than
// maxKey. maxFlowDepth is the maximum nesting of flow collections.
const (
	maxFlow      = 1024
	maxFlowDepth = 8
)

// proveFlow reads the flow collection that begins at data[at], such as {a: b}. It returns true if the collection is
// certainly valid and ends on the same line, and otherwise false.
func (s *scanner) proveFlow(at int) bool {
	if s.data[at] == '[' {
		s.setType(Sequence)
	} else {
		s.setType(Mapping)
	}
	end, ok := s.flowNode(at, 0)
	return ok && end-at <= maxFlow && s.endsLine(end)
}

// flowNode reads the value that begins at data[at] inside a flow collection, and returns the offset of its end.
func (s *scanner) flowNode(at, depth int) (int, bool) {
	if at == s.line.end || depth == maxFlowDepth {
		return 0, false
	}
	switch s.data[at] {
	case '[':
		return s.flowCollection(at, ']', depth)
	case '{':
		return s.flowCollection(at, '}', depth)
	case '"', '\'':
		return s.quoteEnd(at, s.line.end)
	}
	return s.flowPlain(at)
}

// flowCollection reads the flow collection that begins at data[at], and returns the offset of its end. The argument
// closing is the bracket that ends the collection.
func (s *scanner) flowCollection(at int, closing byte, depth int) (int, bool) {
	at = s.pastSpaces(at + 1)
	if at < s.line.end && s.data[at] == closing {
		return at + 1, true
	}
	for {
		var ok bool
		if closing == '}' {
			if at, ok = s.flowKey(at); !ok {
				return 0, false
			}
		}
		if at, ok = s.flowNode(at, depth+1); !ok {
			return 0, false
		}
		at = s.pastSpaces(at)
		switch {
		case at == s.line.end:
			return 0, false
		case s.data[at] == closing:
			return at + 1, true
		case s.data[at] != ',':
			return 0, false
		}
		at = s.pastSpaces(at + 1)
	}
}

// flowKey reads the key at data[at] inside a flow collection, and returns the offset of the key's value.
func (s *scanner) flowKey(at int) (int, bool) {
	if at == s.line.end {
		return 0, false
	}
	var ok bool
	if c := s.data[at]; c == '"' || c == '\'' {
		at, ok = s.quoteEnd(at, s.line.end)
	} else {
		at, ok = s.flowPlain(at)
	}
	if !ok || !s.isColon(at) {
		return 0, false
	}
	return s.pastSpaces(at + 1), true
}

// flowPlain reads the plain scalar at data[at] inside a flow collection, and returns the offset of its end. It
// supports only letters, digits, "_", "." and "/".
func (s *scanner) flowPlain(at int) (int, bool) {
	end := at
	for end < s.line.end && classes[s.data[end]]&inFlow != 0 {
		end++
	}
	return end, end > at
}

// pastSpaces returns the offset of the first byte at or after data[at] that is not a space.
func (s *scanner) pastSpaces(at int) int {
	for at < s.line.end && s.data[at] == ' ' {
		at++
	}
	return at
}
