// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/registryname"
)

// maxWarnings bounds the warnings of a policy.
const maxWarnings = 100

// warnings returns a sentence for each rule that matches no call, as far as that can be known.
func warnings(rules []*rule) []string {
	var out []string
	for i, r := range rules {
		if len(out) == maxWarnings {
			return append(out, "there are further rules that match no call")
		}
		name := r.decision.Rule
		if r.condition.never != "" {
			out = append(out, fmt.Sprintf("rule %s never matches: %s", name, r.condition.never))
			continue
		}
		if instead := r.condition.otherName(); instead != "" {
			out = append(out, fmt.Sprintf("rule %s never matches: it has another name of a registry: %s", name, instead))
			continue
		}
		pinned := r.condition.pinned()
		if r.condition.contradicts(pinned) {
			out = append(out, fmt.Sprintf("rule %s never matches: no call fulfils its condition", name))
			continue
		}
		for _, earlier := range rules[:i] {
			if earlier.covers(r, pinned) {
				out = append(out, fmt.Sprintf("rule %s never matches: rule %s matches the same calls before it",
					name, earlier.decision.Rule))
				break
			}
		}
	}
	return out
}

// otherName returns what the condition should have in place of the name of a registry by which it never calls one: a
// registry may have several. It is empty if there is none.
func (c *condition) otherName() string {
	for _, part := range c.parts {
		switch n := part.(type) {
		case equals:
			if text := ownName(n.field, n.text); text != n.text {
				return fmt.Sprintf("%s is %q", variables[n.field], text)
			}
		case hasPrefix:
			if text := ownName(n.field, n.text); n.field == fieldRepository && text != n.text {
				return fmt.Sprintf("%s begins with %q", variables[n.field], text)
			}
		}
	}
	return ""
}

// ownName returns the one spelling that a field has of a registry or a repository, and other texts as they are.
func ownName(f field, text string) string {
	switch f {
	case fieldRegistry:
		return registryname.Canonical(text)
	case fieldRepository:
		return imagename.CanonicalRepository(text)
	default:
		return text
	}
}

// covers reports whether r is known to match all that other matches. Pinned are the values that other
// requires.
func (r *rule) covers(other *rule, pinned known) bool {
	if r.condition.never != "" || len(r.except) > 0 || !cover(r.images, other.images) {
		return false
	}
	return r.condition.implied(&other.condition, pinned)
}

// implied reports whether c is known to hold whenever other does.
func (c *condition) implied(other *condition, pinned known) bool {
	if len(c.texts) == 0 {
		return c.all && len(c.parts) == 0
	}
	rest := 0
	for text := range c.texts {
		if !other.texts[text] {
			rest++
		}
	}
	if rest == 0 {
		return true
	}
	if !c.all {
		return false
	}
	for _, part := range c.parts {
		if part.under(pinned) != yes && !follows(part, other.parts) {
			return false
		}
	}
	return true
}

// follows reports whether a node is known to hold where all parts do.
func follows(n node, parts []node) bool {
	wanted, ok := n.(hasPrefix)
	for _, part := range parts {
		if have, same := part.(hasPrefix); ok && same && have.field == wanted.field &&
			len(have.text) >= len(wanted.text) && have.text[:len(wanted.text)] == wanted.text {
			return true
		}
		if equal(part, n) {
			return true
		}
	}
	return false
}

// equal reports whether two nodes are known to be the same.
func equal(a, b node) bool {
	switch a := a.(type) {
	case equals:
		b, ok := b.(equals)
		return ok && a == b
	case inGroup:
		b, ok := b.(inGroup)
		return ok && a == b
	case isSigner:
		b, ok := b.(isSigner)
		return ok && a == b
	default:
		return false
	}
}

// pinned returns the values that fields have whenever the condition holds.
func (c *condition) pinned() known {
	k := known{}
	for _, part := range c.parts {
		if e, ok := part.(equals); ok {
			k[e.field] = e.text
		}
	}
	return k
}

// contradicts reports whether the condition holds for no call that has the pinned values. It tries all
// values of the fields that have few.
func (c *condition) contradicts(pinned known) bool {
	return c.tryDomains(pinned, []field{fieldCallerKind, fieldEvaluator, fieldOperation})
}

// tryDomains reports whether the condition is false for each combination of the values of open fields.
func (c *condition) tryDomains(k known, open []field) bool {
	if len(open) == 0 {
		for _, part := range c.parts {
			if part.under(k) == no {
				return true
			}
		}
		return false
	}
	f, rest := open[0], open[1:]
	with := make(known, len(k)+1)
	for field, value := range k {
		with[field] = value
	}
	for _, value := range domains[f] {
		with[f] = value
		if pinned, ok := k[f]; ok && pinned != value {
			continue
		}
		if !c.tryDomains(with, rest) {
			return false
		}
	}
	return true
}
