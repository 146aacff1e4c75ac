// SPDX-License-Identifier: Apache-2.0

package resourcelist

import "slices"

// severities contains the conventional severities, in ascending order.
var severities = []string{"info", "warning", "error"}

// Level returns the result's severity, which is "info" if the function did not set it.
func (r Result) Level() string {
	if r.Severity == "" {
		return severities[0]
	}
	return r.Severity
}

// Worst returns the worst severity among the results, or "none" if there are no results. A severity other than
// error, warning and info counts as info.
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
