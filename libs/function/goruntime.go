// SPDX-License-Identifier: Apache-2.0

package function

import (
	"slices"
	"strconv"
	"strings"
)

// WithGo returns a function's environment with what Go's runtime reads, for a function that may use so many bytes of
// memory; zero is not known. Variables that env has stay as they are. It has no effect on other programs.
//
// Most functions are programs written in Go, which live for milliseconds and do one thing after the other. What they
// use further processors for is to collect garbage, and that takes longer on several than on one: of the processors'
// time, set-namespace needs a fifteenth less with one for a single resource, and two fifths less for thousands.
// Fewer collections take a seventh of what is left. As these take more memory, there is a bound from which on Go
// collects as often as it has to: with half of the memory in use, it would have run out of it without the bound too.
func WithGo(env []string, memory int64) []string {
	env = withVariable(env, "GOMAXPROCS", "1")
	env = withVariable(env, "GOGC", "200")
	if memory > 0 {
		env = withVariable(env, "GOMEMLIMIT", strconv.FormatInt(memory/2, 10))
	}
	return env
}

// withVariable returns env with a variable, unless env has it.
func withVariable(env []string, name, value string) []string {
	if slices.ContainsFunc(env, func(variable string) bool { return strings.HasPrefix(variable, name+"=") }) {
		return env
	}
	return append(slices.Clip(env), name+"="+value)
}
