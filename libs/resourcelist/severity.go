// SPDX-License-Identifier: Apache-2.0

package resourcelist

import "slices"

// severities are the levels by convention, from the least to the worst.
var severities = []string{"info", "warning", "error"}

// Level returns the result's severity; info if the function gave none.
func (r Result) Level() string {
	if r.Severity == "" {
		return severities[0]
	}
	return r.Severity
}

// Worst returns the worst severity among results, and "none" if there are none. A
// severity that is none of the convention counts as info.
func Worst(results []Result) string {
	worst := -1
	for _, r := range results {
		worst = max(worst, slices.Index(severities, r.Level()), 0)
	}
	if worst < 0 {
		return "none"
	}
	return severities[worst]
}
