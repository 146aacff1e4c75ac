// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/registryname"
)

// pattern matches canonical repositories. "*" is anything but a slash and "**" is anything.
type pattern struct {
	// prefix is what each match begins with, and suffix what it ends with. The prefix is the whole match
	// if the pattern is exact, and all of the pattern but "**" if it is open.
	prefix      string
	suffix      string
	exact, open bool
	expr        *regexp.Regexp // of other patterns
}

// patterns match what one of them matches.
type patterns []pattern

// parsePatterns reads patterns. A registry may be given by any of its names.
func parsePatterns(list []string) (patterns, error) {
	var out patterns
	for _, text := range list {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePattern(text string) (pattern, error) {
	if text == "" || strings.ContainsAny(text, " @") {
		return pattern{}, fmt.Errorf("%q is not a pattern of repositories, such as ghcr.io/example/**", text)
	}
	text = canonical(text)
	prefix, rest, _ := strings.Cut(text, "*")
	switch {
	case !strings.Contains(text, "*"):
		return pattern{prefix: text, exact: true}, nil
	case rest == "*":
		return pattern{prefix: prefix, open: true}, nil
	}
	expr := regexp.QuoteMeta(text)
	expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
	expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
	compiled, err := regexp.Compile("^" + expr + "$")
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", text, err)
	}
	return pattern{prefix: prefix, suffix: text[strings.LastIndexByte(text, '*')+1:], expr: compiled}, nil
}

// match reports whether a pattern matches a canonical repository.
func (ps patterns) match(repository string) bool {
	for i := range ps {
		if ps[i].match(repository) {
			return true
		}
	}
	return false
}

func (p *pattern) match(repository string) bool {
	switch {
	case p.exact:
		return repository == p.prefix
	case !strings.HasPrefix(repository, p.prefix) || !strings.HasSuffix(repository, p.suffix):
		return false
	default:
		return p.open || p.expr.MatchString(repository)
	}
}

// covers reports whether p is known to match all that q matches.
func (p *pattern) covers(q *pattern) bool {
	switch {
	case p.open:
		return strings.HasPrefix(q.prefix, p.prefix)
	case q.exact:
		return p.match(q.prefix)
	default:
		return p.expr != nil && q.expr != nil && p.expr.String() == q.expr.String()
	}
}

// cover reports whether ps, of which none match all, are known to match all that qs match.
func (ps patterns) cover(qs patterns) bool {
	if len(ps) == 0 {
		return true
	}
	if len(qs) == 0 {
		qs = patterns{{open: true}}
	}
	for i := range qs {
		if !ps.coverOne(&qs[i]) {
			return false
		}
	}
	return true
}

func (ps patterns) coverOne(q *pattern) bool {
	for i := range ps {
		if ps[i].covers(q) {
			return true
		}
	}
	return false
}

// canonical returns a repository, or a pattern of some, in the one spelling in which they are compared, so
// that no other spelling of a registry gets around a rule.
func canonical(repository string) string {
	host, path, ok := strings.Cut(strings.ToLower(repository), "/")
	if !ok {
		return host
	}
	return registryname.Canonical(host) + "/" + path
}
