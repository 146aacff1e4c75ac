// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// node is a part of a condition that is evaluated without an interpreter: comparisons of variables with
// constants, which are what most conditions are made of.
type node interface {
	eval(v *values) bool
	// under returns what the node is for all calls that have the known values.
	under(k known) tri
}

// known are the fields of which the value is known.
type known map[field]string

// tri is a truth value that may be unknown.
type tri int

const (
	unknown tri = iota
	no
	yes
)

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

// constant is always the same.
type constant bool

func (c constant) eval(*values) bool { return bool(c) }
func (c constant) under(known) tri   { return triOf(bool(c)) }

// not is the opposite of a node.
type not struct{ node }

func (n not) eval(v *values) bool { return !n.node.eval(v) }

func (n not) under(k known) tri {
	switch n.node.under(k) {
	case yes:
		return no
	case no:
		return yes
	default:
		return unknown
	}
}

// both is the conjunction of two nodes.
type both struct{ a, b node }

func (n both) eval(v *values) bool { return n.a.eval(v) && n.b.eval(v) }

func (n both) under(k known) tri {
	a, b := n.a.under(k), n.b.under(k)
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	default:
		return unknown
	}
}

// either is the disjunction of two nodes.
type either struct{ a, b node }

func (n either) eval(v *values) bool { return n.a.eval(v) || n.b.eval(v) }

func (n either) under(k known) tri { return not{both{not{n.a}, not{n.b}}}.under(k) }

// comparison compares a field with a text.
type comparison struct {
	field field
	text  string
	holds func(value, text string) bool
}

func (c comparison) eval(v *values) bool { return c.holds(v.text[c.field], c.text) }

func (c comparison) under(k known) tri {
	value, ok := k[c.field]
	if !ok {
		return unknown
	}
	return triOf(c.holds(value, c.text))
}

// equals is the commonest comparison.
type equals struct {
	field field
	text  string
}

func (e equals) eval(v *values) bool { return v.text[e.field] == e.text }

func (e equals) under(k known) tri {
	return comparison{e.field, e.text, func(a, b string) bool { return a == b }}.under(k)
}

// hasPrefix reports whether a field begins with a text.
type hasPrefix struct {
	field field
	text  string
}

func (h hasPrefix) eval(v *values) bool { return strings.HasPrefix(v.text[h.field], h.text) }

func (h hasPrefix) under(k known) tri { return comparison{h.field, h.text, strings.HasPrefix}.under(k) }

// oneOf reports whether a field is one of some texts.
type oneOf struct {
	field field
	texts []string // sorted
}

func (o oneOf) eval(v *values) bool {
	_, found := slices.BinarySearch(o.texts, v.text[o.field])
	return found
}

func (o oneOf) under(k known) tri {
	value, ok := k[o.field]
	if !ok {
		return unknown
	}
	_, found := slices.BinarySearch(o.texts, value)
	return triOf(found)
}

// inGroup reports whether the caller is in a group.
type inGroup string

func (g inGroup) eval(v *values) bool { return slices.Contains(v.groups, string(g)) }
func (g inGroup) under(known) tri     { return unknown }

// isSigner reports whether a signer has signed the image.
type isSigner string

func (s isSigner) eval(v *values) bool { return slices.Contains(v.signers, string(s)) }
func (s isSigner) under(known) tri     { return unknown }

// size compares the size of the input.
type size func(bytes int64) bool

func (s size) eval(v *values) bool { return s(v.bytes) }
func (s size) under(known) tri     { return unknown }
