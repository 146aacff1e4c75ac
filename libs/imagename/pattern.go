// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/registryname"
)

// Pattern matches canonical repositories, such as "docker.io/library/busybox". "*" is anything but a slash and
// "**" is anything.
type Pattern struct {
	// prefix is the beginning of each match, and suffix the end. The prefix is the whole match if the pattern is exact,
	// and all of the pattern except "**" if it is open.
	prefix, suffix string
	exact, open    bool
	expr           *regexp.Regexp // for all further patterns
}

// ParsePattern reads a pattern. A registry may be given by any of its names.
func ParsePattern(text string) (Pattern, error) {
	if text == "" || strings.ContainsAny(text, " @") {
		return Pattern{}, fmt.Errorf("%q is not a pattern of repositories, such as ghcr.io/example/**", text)
	}
	if err := checkRepository(text); err != nil {
		return Pattern{}, err
	}
	text = CanonicalRepository(text)
	prefix, rest, _ := strings.Cut(text, "*")
	switch {
	case !strings.Contains(text, "*"):
		return Pattern{prefix: text, exact: true}, nil
	case rest == "*":
		return Pattern{prefix: prefix, open: true}, nil
	}
	expr := regexp.QuoteMeta(text)
	expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
	expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
	compiled, err := regexp.Compile("^" + expr + "$")
	if err != nil {
		return Pattern{}, fmt.Errorf("pattern %q: %w", text, err)
	}
	return Pattern{prefix: prefix, suffix: text[strings.LastIndexByte(text, '*')+1:], expr: compiled}, nil
}

// checkRepository rejects a pattern that no repository matches: a rule with it would have no effect.
func checkRepository(pattern string) error {
	_, path, ok := strings.Cut(pattern, "/")
	switch {
	case !ok && !strings.Contains(pattern, "**"):
		return fmt.Errorf("pattern %q matches no repository: begin it with the registry, as ghcr.io/example/fn, or with **/",
			pattern)
	case strings.Contains(path, ":"):
		return fmt.Errorf("pattern %q matches no repository: leave the tag out", pattern)
	}
	return nil
}

// Match reports whether the pattern matches a canonical repository.
func (p *Pattern) Match(repository string) bool {
	switch {
	case p.exact:
		return repository == p.prefix
	case !strings.HasPrefix(repository, p.prefix) || !strings.HasSuffix(repository, p.suffix):
		return false
	default:
		return p.open || p.expr.MatchString(repository)
	}
}

// Exact returns the repository of an exact pattern.
func (p *Pattern) Exact() (repository string, ok bool) { return p.prefix, p.exact }

// Prefix returns the beginning of each match.
func (p *Pattern) Prefix() string { return p.prefix }

// Covers reports whether p certainly matches everything that q matches.
func (p *Pattern) Covers(q *Pattern) bool {
	switch {
	case p.open:
		return strings.HasPrefix(q.prefix, p.prefix)
	case q.exact:
		return p.Match(q.prefix)
	default:
		return p.expr != nil && q.expr != nil && p.expr.String() == q.expr.String()
	}
}

// Patterns match an image if any of the patterns matches its repository. No patterns match nothing.
type Patterns []Pattern

// ParsePatterns reads a list of patterns.
func ParsePatterns(list []string) (Patterns, error) {
	var patterns Patterns
	for _, text := range list {
		p, err := ParsePattern(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// Match reports whether a pattern matches the repository of an image, by whichever of its names the registry is
// called.
func (ps Patterns) Match(name Name) bool {
	return len(ps) > 0 && ps.MatchRepository(CanonicalRepository(name.Repository))
}

// MatchRepository reports whether a pattern matches a canonical repository.
func (ps Patterns) MatchRepository(repository string) bool {
	return slices.ContainsFunc(ps, func(p Pattern) bool { return p.Match(repository) })
}

// CanonicalRepository returns the canonical spelling of a repository, or of a pattern of repositories, so that no other
// spelling of a registry gets around a rule.
func CanonicalRepository(repository string) string {
	host, path, ok := strings.Cut(strings.ToLower(repository), "/")
	if !ok {
		return host
	}
	return registryname.Canonical(host) + "/" + path
}
