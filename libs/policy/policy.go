// SPDX-License-Identifier: Apache-2.0

// Package policy decides who may have which image evaluated, and within which limits: by the rules of one
// file, of which the first that matches counts.
package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

// Operations that a policy is asked about.
const (
	// Evaluate runs a function.
	Evaluate = "evaluate"
	// ListTags asks a registry for the tags of a repository: the image has neither tag nor digest.
	ListTags = "list-tags"
)

// Facts are what rules decide by.
type Facts struct {
	Caller caller.Identity
	// Address is where the call comes from.
	Address string
	Image   imagename.Name
	// Digest is the digest of the image that runs, and IndexDigest that of the multi-platform index from which
	// it was chosen; empty if they are not known.
	Digest, IndexDigest string
	// Signers are the signers of the policy that are verified to have signed the image. Found is what there is
	// in their place if there are none, and Unread why others are not known, for callers.
	Signers   []string
	Found     string
	Unread    string
	Operation string
	// Evaluator is the evaluator that would run the function: exec, sandbox or pod. It is empty if no
	// function runs.
	Evaluator string
	// InputBytes is the size of the resource list.
	InputBytes int64
}

// The evaluators. Exec runs local binaries, which are no images.
const (
	Exec    = "exec"
	Sandbox = "sandbox"
	Pod     = "pod"
)

// Evaluators returns all evaluators, in the order in which they are asked.
func Evaluators() []string { return []string{Exec, Sandbox, Pod} }

// Limits bound the evaluations that a rule allows. The zero value of a field sets no bound.
type Limits struct {
	// Concurrency is how many evaluations may run at a time, and Rate how many may begin in a second.
	Concurrency int
	Rate        float64
	// EvaluationTime is how long an evaluation may take.
	EvaluationTime time.Duration
	// Network reports whether the function may use the network; nil for what is configured elsewhere.
	Network *bool
}

// Decision is what a policy decides about a call.
type Decision struct {
	// Rule is the name of the rule that matched; [DefaultRule] if none did.
	Rule  string
	Allow bool
	// Reason is why the call is denied, in words for the caller.
	Reason string
	Limits Limits
}

// DefaultRule is the name of the decision for calls that no rule matches.
const DefaultRule = "default"

// Policy is a set of rules. It does not change. A nil Policy allows everything.
type Policy struct {
	rules    []*rule
	index    *index
	fallback Decision
	// ofDigests are the rules that use the digest of images, and ofSigners their signers.
	ofDigests, ofSigners []*rule
	signers              []signer.Signer
	warnings             []string
}

// Decide returns what the first rule decides that matches.
func (p *Policy) Decide(f Facts) Decision {
	if p == nil {
		return Decision{Rule: DefaultRule, Allow: true}
	}
	v, decision := newValues(f), p.fallback
	p.index.candidates(v, func(i int) bool {
		r := p.rules[i]
		matches, err := r.matches(v)
		switch {
		case err != nil:
			decision = Decision{Rule: r.decision.Rule, Reason: fmt.Sprintf("its condition failed: %v", err)}
		case matches:
			decision = r.decide(f)
		}
		return err == nil && !matches
	})
	return decision
}

// decide returns the decision about a call that the rule matches.
func (r *rule) decide(f Facts) Decision {
	d := r.decision
	if len(r.signers) > 0 && f.Operation == Evaluate && !f.isSigned(r.signers) {
		return Decision{Rule: d.Rule, Reason: f.unsigned(r.signers)}
	}
	if r.reason != nil {
		d.Reason = r.reason(f)
	}
	return d
}

// Rules returns the names of the rules in their order, the default last.
func (p *Policy) Rules() []string {
	if p == nil {
		return nil
	}
	names := make([]string, 0, len(p.rules)+1)
	for _, r := range p.rules {
		names = append(names, r.decision.Rule)
	}
	return append(names, DefaultRule)
}

// Warnings returns what is most likely a mistake in the rules, such as a rule that matches no call.
func (p *Policy) Warnings() []string { return p.warnings }

// UsesDigest reports whether a rule depends on the digest of images.
func (p *Policy) UsesDigest() bool { return p != nil && len(p.ofDigests) > 0 }

// Compile returns the policy of a file, whose keys were read, and of lists; a nil file has no rules and allows.
// Its errors name the rule and the field.
func Compile(file *File, lists Lists) (*Policy, error) {
	rules, err := lists.rules()
	if err != nil {
		return nil, err
	}
	p := &Policy{rules: rules, fallback: Decision{Rule: DefaultRule, Allow: true}}
	if file != nil {
		compiled, err := file.compile()
		if err != nil {
			return nil, err
		}
		if p.signers, err = file.signers(); err != nil {
			return nil, err
		}
		p.rules = append(p.rules, compiled...)
		p.fallback.Allow = file.Default == actionAllow
		p.fallback.Reason = "no rule of the policy allows it"
	}
	for _, r := range p.rules {
		if r.usesDigest() {
			p.ofDigests = append(p.ofDigests, r)
		}
		if r.usesSigners() {
			p.ofSigners = append(p.ofSigners, r)
		}
	}
	p.index, p.warnings = newIndex(p.rules), warnings(p.rules)
	return p, nil
}

// digests returns the digests that a rule sees.
func (f Facts) digests() (image, index string) {
	return cmp.Or(f.Digest, f.Image.Digest), cmp.Or(f.IndexDigest, f.Image.Digest, f.Digest)
}
