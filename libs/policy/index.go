// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/bits"
	"slices"
)

// index finds the rules that may match a call, so that most are never looked at: each rule is entered
// under a value, or a beginning of a value, that the calls have which it matches.
type index struct {
	// always are rules that are entered nowhere else.
	always   set
	exact    [fields]map[string]set
	prefixes [fields]prefixes
	groups   map[string]set
}

// prefixes are sets of rules by the beginning of a value.
type prefixes struct {
	lengths []int // of the keys, ascending
	rules   map[string]set
}

// set is a set of rules, by their places.
type set []uint64

// with returns the set with rule i.
func (s set) with(i int) set {
	for len(s) <= i/64 {
		s = append(s, 0)
	}
	s[i/64] |= 1 << (i % 64)
	return s
}

// newIndex returns the index of rules.
func newIndex(rules []*rule) *index {
	x := &index{groups: map[string]set{}}
	for f := range x.exact {
		x.exact[f] = map[string]set{}
		x.prefixes[f].rules = map[string]set{}
	}
	choices, uses := make([][][]key, len(rules)), map[key]int{}
	for i, r := range rules {
		choices[i] = r.keys()
		for _, keys := range choices[i] {
			for _, k := range keys {
				uses[k]++
			}
		}
	}
	for i := range rules {
		if len(choices[i]) == 0 {
			x.always = x.always.with(i)
			continue
		}
		for _, k := range rarest(choices[i], uses) {
			x.enter(i, k)
		}
	}
	for f := range x.prefixes {
		slices.Sort(x.prefixes[f].lengths)
		x.prefixes[f].lengths = slices.Compact(x.prefixes[f].lengths)
	}
	return x
}

// key is something that a call has: a value of a field, the beginning of one, or a group.
type key struct {
	kind  keyKind
	field field
	text  string
}

type keyKind int

const (
	exactKey keyKind = iota
	prefixKey
	groupKey
)

// rarest returns the choice whose keys the fewest rules have.
func rarest(choices [][]key, uses map[key]int) []key {
	total := func(keys []key) (n int) {
		for _, k := range keys {
			n += uses[k]
		}
		return n
	}
	return slices.MinFunc(choices, func(a, b []key) int { return total(a) - total(b) })
}

// keys returns sets of keys: of each, a call has one if the rule matches it.
func (r *rule) keys() [][]key {
	var choices [][]key
	for _, part := range r.condition.parts {
		if keys, ok := keysOf(part); ok {
			choices = append(choices, keys)
		}
	}
	var keys []key
	for i := range r.images {
		kind, text := prefixKey, r.images[i].Prefix()
		if exact, ok := r.images[i].Exact(); ok {
			kind, text = exactKey, exact
		}
		keys = append(keys, key{kind, fieldRepository, text})
	}
	if len(keys) > 0 {
		choices = append(choices, keys)
	}
	return choices
}

// indexed reports whether values of a field are keys. Fields that have few values would find too many rules, and
// digests are not known where the index finds the rules that depend on them.
func indexed(f field) bool {
	_, few := domains[f]
	return !few && f != fieldDigest && f != fieldIndexDigest
}

// keysOf returns keys of which each call has one for which a node holds. It reports whether there are such
// keys.
func keysOf(n node) ([]key, bool) {
	switch n := n.(type) {
	case equals:
		return []key{{exactKey, n.field, n.text}}, indexed(n.field)
	case oneOf:
		keys := make([]key, 0, len(n.texts))
		for _, text := range n.texts {
			keys = append(keys, key{exactKey, n.field, text})
		}
		return keys, indexed(n.field) && len(keys) > 0
	case hasPrefix:
		return []key{{prefixKey, n.field, n.text}}, indexed(n.field)
	case expression:
		return []key{{prefixKey, n.field, n.prefix}}, indexed(n.field) && n.prefix != ""
	case inGroup:
		return []key{{groupKey, 0, string(n)}}, true
	case both:
		if keys, ok := keysOf(n.a); ok {
			return keys, true
		}
		return keysOf(n.b)
	case either:
		a, okA := keysOf(n.a)
		b, okB := keysOf(n.b)
		return append(a, b...), okA && okB
	default:
		return nil, false
	}
}

// enter enters rule i under a key.
func (x *index) enter(i int, k key) {
	switch k.kind {
	case exactKey:
		x.exact[k.field][k.text] = x.exact[k.field][k.text].with(i)
	case groupKey:
		x.groups[k.text] = x.groups[k.text].with(i)
	case prefixKey:
		p := &x.prefixes[k.field]
		p.rules[k.text] = p.rules[k.text].with(i)
		p.lengths = append(p.lengths, len(k.text))
	}
}

// candidates calls visit with the places of the rules that may match v, in their order, until it returns
// false.
func (x *index) candidates(v *values, visit func(i int) bool) {
	sets := make([]set, 0, 32)
	sets = append(sets, x.always)
	for f := range x.exact {
		if s, ok := x.exact[f][v.text[f]]; ok {
			sets = append(sets, s)
		}
		sets = x.prefixes[f].find(v.text[f], sets)
	}
	for _, group := range v.groups {
		if s, ok := x.groups[group]; ok {
			sets = append(sets, s)
		}
	}
	longest := 0
	for _, s := range sets {
		longest = max(longest, len(s))
	}
	for word := range longest {
		var merged uint64
		for _, s := range sets {
			if word < len(s) {
				merged |= s[word]
			}
		}
		for ; merged != 0; merged &= merged - 1 {
			if !visit(word*64 + bits.TrailingZeros64(merged)) {
				return
			}
		}
	}
}

// find appends the sets of all beginnings of text.
func (p *prefixes) find(text string, sets []set) []set {
	for _, length := range p.lengths {
		if length > len(text) {
			break
		}
		if s, ok := p.rules[text[:length]]; ok {
			sets = append(sets, s)
		}
	}
	return sets
}
