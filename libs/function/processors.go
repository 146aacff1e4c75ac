// SPDX-License-Identifier: Apache-2.0

package function

import (
	"slices"
	"strconv"
	"strings"
)

// processorsVariable is where Go's runtime finds how many processors to use at a time.
const processorsVariable = "GOMAXPROCS"

// WithProcessors returns a function's environment such that a program written in Go uses
// so many processors at a time, unless env sets it already. Zero leaves it to Go, which
// takes all.
//
// Most functions are such programs, which live for milliseconds and do one thing after
// the other. What they use further processors for is to collect garbage, and that takes
// longer on several than on one: of the processors' time, set-namespace needs a fifteenth
// less with one for a single resource, and two fifths less for thousands.
func WithProcessors(env []string, processors int) []string {
	set := func(variable string) bool { return strings.HasPrefix(variable, processorsVariable+"=") }
	if processors == 0 || slices.ContainsFunc(env, set) {
		return env
	}
	return append(slices.Clip(env), processorsVariable+"="+strconv.Itoa(processors))
}
