// SPDX-License-Identifier: Apache-2.0

// Package imagepolicy decides which images callers may use, with a deny list, an allow list, and a rule that requires
// digests. The gateway checks the policy once per evaluation, before it calls an evaluator.
package imagepolicy

import (
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Lists configures a Policy. An item is a pattern of repositories, such as "ghcr.io/org/**", or name=pattern. The
// name identifies the rule in errors.
type Lists struct {
	// Allow contains patterns. Unless the list is empty, an image must match at least one pattern.
	Allow []string
	// Deny contains patterns that an image must not match.
	Deny []string
	// RequireDigest rejects images that are named without a digest.
	RequireDigest bool
}

// Policy is a set of rules. The zero Policy allows everything.
type Policy struct {
	deny, allow   []rule
	requireDigest bool
}

// New returns the policy of lists.
func New(lists Lists) (Policy, error) {
	deny, err := parseRules(lists.Deny)
	if err != nil {
		return Policy{}, err
	}
	allow, err := parseRules(lists.Allow)
	return Policy{deny: deny, allow: allow, requireDigest: lists.RequireDigest}, err
}

// rule is a named pattern of repositories.
type rule struct {
	name    string
	pattern imagename.Pattern
}

// parseRules parses rules of the form "name=pattern" or "pattern", where the pattern is also the name. In a pattern,
// "*" matches any text without a slash, and "**" matches any text. A pattern must match a whole canonical repository,
// such as "docker.io/library/busybox". It may name a registry by any of the registry's names.
func parseRules(items []string) ([]rule, error) {
	var rules []rule
	for _, item := range items {
		name, text, named := strings.Cut(item, "=")
		if !named {
			text = name
		}
		if name == "" || text == "" {
			return nil, fmt.Errorf("rule %q must be a pattern, or name=pattern", item)
		}
		pattern, err := imagename.ParsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", item, err)
		}
		rules = append(rules, rule{name: name, pattern: pattern})
	}
	return rules, nil
}

// Check returns nil if callers may use the image. Otherwise it returns an error of class fault.Denied with the name of
// the rule that rejects the image.
func (p *Policy) Check(image imagename.Name) error {
	if err := p.CheckRepository(image.Repository); err != nil {
		return err
	}
	if p.requireDigest && image.Digest == "" {
		return fault.New(fault.Denied, "image %q is rejected by the rule %q: name it by digest, as %s@sha256:…",
			image, "require-digest", image.Repository)
	}
	return nil
}

// CheckRepository applies the deny list and the allow list to a repository. It does not require a digest.
func (p *Policy) CheckRepository(repository string) error {
	for _, rule := range p.deny {
		if rule.matches(repository) {
			return fault.New(fault.Denied, "repository %q is rejected by the rule %q of the deny list", repository, rule.name)
		}
	}
	if len(p.allow) == 0 {
		return nil
	}
	for _, rule := range p.allow {
		if rule.matches(repository) {
			return nil
		}
	}
	return fault.New(fault.Denied, "repository %q is rejected by the rule %q: no pattern of the allow list matches it",
		repository, "allow-list")
}

// matches reports whether the pattern matches the canonical or the literal name of a repository.
func (r *rule) matches(repository string) bool {
	return r.pattern.Match(imagename.CanonicalRepository(repository)) || r.pattern.Match(strings.ToLower(repository))
}
