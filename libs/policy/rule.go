// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/google/cel-go/cel"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// rule is a compiled rule.
type rule struct {
	images patterns // none match all
	// except are images that the rule does not match.
	except    patterns
	condition condition
	decision  Decision
	// signers are those of which one has to have signed the image; none require no signature.
	signers []string
	// reason words a denial; nil if the decision has the words.
	reason func(Facts) string
}

// matches reports whether the rule is about a call. An error comes from its condition.
func (r *rule) matches(v *values) (bool, error) {
	if !r.hasImage(v) {
		return false, nil
	}
	return r.condition.holds(v)
}

// hasImage reports whether the rule is about an image.
func (r *rule) hasImage(v *values) bool {
	repository := v.text[fieldRepository]
	return (len(r.images) == 0 || r.images.MatchRepository(repository)) && !r.except.MatchRepository(repository)
}

// usesDigest reports whether the rule depends on the digest of images.
func (r *rule) usesDigest() bool {
	return r.condition.uses(fieldDigest) || r.condition.uses(fieldIndexDigest)
}

// usesSigners reports whether the rule depends on who has signed an image.
func (r *rule) usesSigners() bool { return len(r.signers) > 0 || r.readsSigners() }

// readsSigners reports whether the rule's condition depends on who has signed an image.
func (r *rule) readsSigners() bool { return r.condition.usesSigners }

// compile returns the rules of a file.
func (f *File) compile() ([]*rule, error) {
	env, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	rules := make([]*rule, 0, len(f.Rules))
	for i := range f.Rules {
		r, err := f.Rules[i].compile(env)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", f.Rules[i].Name, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// compile returns a rule.
func (r *Rule) compile(env *cel.Env) (*rule, error) {
	out := &rule{signers: r.Signers, decision: Decision{
		Rule: r.Name, Allow: r.Action == actionAllow, Reason: r.Message, Limits: r.Limits.limits(),
	}}
	var err error
	if out.images, err = imagename.ParsePatterns(r.Images); err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	if out.condition, err = compileCondition(env, r.When); err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	return out, nil
}
