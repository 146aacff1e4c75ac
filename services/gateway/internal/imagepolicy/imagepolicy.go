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

// Lists configures a Policy. Each item is a pattern of repositories, such as "ghcr.io/org/**", or has the form
// name=pattern. Errors contain the name, so that users find the rule that rejects their image.
type Lists struct {
	// Allow contains patterns of repositories that callers may use. If the list is empty, callers may use all
	// repositories that the deny list does not contain.
	Allow []string
	// Deny contains patterns of repositories that callers must not use. It takes precedence over the allow list.
	Deny []string
	// RequireDigest is true if callers must name images by digest. Otherwise a moved tag could replace the image
	// unnoticed.
	RequireDigest bool
}

// Policy is a set of rules for the images that callers may use. The zero Policy allows all images.
type Policy struct {
	deny, allow   []rule
	requireDigest bool
}

// New returns a policy with the rules in lists. It returns an error if a rule is not valid.
func New(lists Lists) (Policy, error) {
	deny, err := parseRules(lists.Deny)
	if err != nil {
		return Policy{}, err
	}
	allow, err := parseRules(lists.Allow)
	return Policy{deny: deny, allow: allow, requireDigest: lists.RequireDigest}, err
}

// rule is a pattern of repositories with a name for errors.
type rule struct {
	name    string
	pattern imagename.Pattern
}

// parseRules parses rules of the form "name=pattern". A rule may also be only a pattern, which then serves as the name.
// In a pattern, "*" matches text without a slash, and "**" matches any text. A pattern must match the whole canonical
// name of a repository, such as "docker.io/library/busybox". If a registry has several names, such as "docker.io" and
// "index.docker.io", a pattern may contain any of them.
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

// Check returns nil if callers may use the image. Otherwise it returns an error of class fault.Denied that names
// the rejecting rule.
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

// CheckRepository returns an error if the deny list contains the repository, or the allow list does not. It ignores
// the rule that requires digests, because the name of a repository contains no digest.
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

// matches reports whether the pattern matches the repository's canonical name, or the name as the caller wrote it.
func (r *rule) matches(repository string) bool {
	return r.pattern.Match(imagename.CanonicalRepository(repository)) || r.pattern.Match(strings.ToLower(repository))
}
