// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// patterns match the repositories that one of them matches.
type patterns = imagename.Patterns

// anyRepository matches all repositories.
var anyRepository = func() imagename.Pattern {
	p, err := imagename.ParsePattern("**")
	if err != nil {
		panic(err) // it is constant
	}
	return p
}()

// cover reports whether ps, of which none match all, are known to match all that qs match.
func cover(ps, qs patterns) bool {
	if len(ps) == 0 {
		return true
	}
	if len(qs) == 0 {
		qs = patterns{anyRepository}
	}
	return !slices.ContainsFunc(qs, func(q imagename.Pattern) bool {
		return !slices.ContainsFunc(ps, func(p imagename.Pattern) bool { return p.Covers(&q) })
	})
}
