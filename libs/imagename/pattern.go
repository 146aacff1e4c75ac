// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"fmt"
	"regexp"
	"strings"
)

// Patterns match images by their canonical repositories, such as
// "docker.io/library/busybox". In a pattern, "*" is anything but a slash and "**" is
// anything. No patterns match nothing.
type Patterns []*regexp.Regexp

// ParsePatterns reads a list of patterns. They are compared with canonical names: another
// spelling of a registry matches nothing.
func ParsePatterns(list []string) (Patterns, error) {
	var patterns Patterns
	for _, text := range list {
		if text == "" || strings.ContainsAny(text, " @") {
			return nil, fmt.Errorf("%q is not a pattern of repositories, such as ghcr.io/example/fn-*", text)
		}
		expr := regexp.QuoteMeta(text)
		expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
		expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
		compiled, err := regexp.Compile("^" + expr + "$")
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
		patterns = append(patterns, compiled)
	}
	return patterns, nil
}

// Match reports whether a pattern matches the repository of an image.
func (p Patterns) Match(name Name) bool {
	for _, pattern := range p {
		if pattern.MatchString(name.Repository) {
			return true
		}
	}
	return false
}
