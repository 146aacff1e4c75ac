// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// NeedsDigest reports whether the decision about a call depends on the digest of its image. Rules that decide
// before one that uses the digest do not need it.
func (p *Policy) NeedsDigest(f Facts) bool {
	if !p.UsesDigest() {
		return false
	}
	r, _ := p.first(f, p.ofDigests, (*rule).usesDigest)
	return r != nil && r.usesDigest()
}

// NeedsSigners reports whether the decision about a call depends on who has signed its image. Where it depends on
// the digest too, that has to be among the facts.
func (p *Policy) NeedsSigners(f Facts) bool {
	r, err := p.firstOfSigners(f)
	return r != nil && (r.readsSigners() || err == nil && len(r.signers) > 0)
}

// ReadsSigners returns the name of the rule whose condition reads who has signed the image, if the decision about a
// call depends on one. Such a condition would be wrong about an image whose signatures are not verified: it may be that
// a signer has not signed.
func (p *Policy) ReadsSigners(f Facts) (rule string, reads bool) {
	r, _ := p.firstOfSigners(f)
	if r == nil || !r.readsSigners() {
		return "", false
	}
	return r.decision.Rule, true
}

// firstOfSigners returns the first rule that decides, or would do so by a condition that reads who has signed. It is
// nil if no rule that may be about the call depends on signers.
func (p *Policy) firstOfSigners(f Facts) (*rule, error) {
	if f.Operation != Evaluate || !p.UsesSigners() {
		return nil, nil
	}
	return p.first(f, p.ofSigners, (*rule).readsSigners)
}

// first returns the first rule about the image of a call whose condition is open, since it uses what is not among the
// facts, or that matches, or whose condition fails with the error. It evaluates no condition, and returns nil, if no
// rule of interest is about the image.
func (p *Policy) first(f Facts, ofInterest []*rule, open func(*rule) bool) (first *rule, err error) {
	v := newValues(f)
	if !slices.ContainsFunc(ofInterest, func(r *rule) bool { return r.hasImage(v) }) {
		return nil, nil
	}
	p.index.candidates(v, func(i int) bool {
		r := p.rules[i]
		found := open(r) && r.hasImage(v)
		if !open(r) {
			found, err = r.matches(v)
		}
		if found || err != nil {
			first = r
		}
		return first == nil
	})
	return first, err
}
