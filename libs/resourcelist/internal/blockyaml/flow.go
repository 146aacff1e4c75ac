// SPDX-License-Identifier: Apache-2.0

package blockyaml

// maxFlow is the maximum size of a flow collection in bytes, so that no key in it exceeds maxKey. maxFlowDepth is the
// maximum nesting.
const (
	maxFlow      = 1024
	maxFlowDepth = 8
)

// proveFlow accepts the flow collection at offset at, such as {a: b}, if it ends on the same line.
func (s *scanner) proveFlow(at int) bool {
	if s.data[at] == '[' {
		s.setType(Sequence)
	} else {
		s.setType(Mapping)
	}
	end, ok := s.flowNode(at, 0)
	return ok && end-at <= maxFlow && s.endsLine(end)
}

// flowNode returns the offset past the node at offset at inside a flow collection.
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

// flowCollection returns the offset past the flow collection at offset at, which ends with the byte closing.
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

// flowKey returns the offset of the value after the key at offset at.
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

// flowPlain returns the offset past the plain scalar at offset at. It accepts only scalars without blanks and
// indicators.
func (s *scanner) flowPlain(at int) (int, bool) {
	end := at
	for end < s.line.end && classes[s.data[end]]&inFlow != 0 {
		end++
	}
	return end, end > at
}

// pastSpaces returns the offset of the first byte that is not a space, from offset at on.
func (s *scanner) pastSpaces(at int) int {
	for at < s.line.end && s.data[at] == ' ' {
		at++
	}
	return at
}
