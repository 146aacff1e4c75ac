// SPDX-License-Identifier: Apache-2.0

// Package policy decides which images may be used.
package policy

import (
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Policy is a set of rules. The zero Policy allows everything.
type Policy struct {
	// Deny are the rules that reject what they match. They come first.
	Deny []Rule
	// Allow are the rules of which one has to match, if there are any.
	Allow []Rule
	// RequireDigest rejects images that are not named by digest.
	RequireDigest bool
}

// Rule is a named pattern of repositories.
type Rule struct {
	Name    string
	pattern imagename.Pattern
}

// ParseRule reads "name=pattern" or "pattern", which is its own name then. In a
// pattern, "*" is anything but a slash and "**" is anything. It matches whole
// canonical repositories, such as "docker.io/library/busybox". A registry may be given
// by any of its names.
func ParseRule(s string) (Rule, error) {
	name, pattern, named := strings.Cut(s, "=")
	if !named {
		pattern = name
	}
	if name == "" || pattern == "" {
		return Rule{}, fmt.Errorf("rule %q has to be a pattern, or name=pattern", s)
	}
	parsed, err := imagename.ParsePattern(pattern)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %q: %w", s, err)
	}
	return Rule{Name: name, pattern: parsed}, nil
}

// ParseRules reads a list of rules.
func ParseRules(list []string) ([]Rule, error) {
	var rules []Rule
	for _, s := range list {
		rule, err := ParseRule(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// Check returns nil if name may be used, and an error of class fault.Denied with
// the name of the rule that denies it.
func (p *Policy) Check(name imagename.Name) error {
	if err := p.CheckRepository(name.Repository); err != nil {
		return err
	}
	if p.RequireDigest && name.Digest == "" {
		return fault.New(
			fault.Denied,
			"image %q is rejected by the rule %q: name it by digest, as %s@sha256:…",
			name,
			"require-digest",
			name.Repository,
		)
	}
	return nil
}

// CheckRepository is Check for a repository by itself.
func (p *Policy) CheckRepository(repository string) error {
	for _, rule := range p.Deny {
		if rule.matches(repository) {
			return fault.New(fault.Denied, "repository %q is rejected by the rule %q of the deny list", repository, rule.Name)
		}
	}
	if len(p.Allow) == 0 {
		return nil
	}
	for _, rule := range p.Allow {
		if rule.matches(repository) {
			return nil
		}
	}
	return fault.New(
		fault.Denied,
		"repository %q is rejected by the rule %q: no pattern of the allow list matches it",
		repository,
		"allow-list",
	)
}

// matches reports whether the rule is about a repository, in its canonical spelling or
// as it is written.
func (r *Rule) matches(repository string) bool {
	return r.pattern.Match(imagename.CanonicalRepository(repository)) || r.pattern.Match(strings.ToLower(repository))
}
