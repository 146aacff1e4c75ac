// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"fmt"
	"strings"
)

// numbered returns n lines, each with its number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// costly are lists that are small, or decode without end, or to something large: each for
// a size.
var costly = map[string]func(size int) string{
	"tags":             func(n int) string { return head + "results:\n- tags:\n" + numbered("    a%d: b\n", n) },
	"one tag":          func(n int) string { return head + "results:\n- tags:\n" + strings.Repeat("    a: b\n", n) },
	"fields of result": func(n int) string { return head + "results:\n- message: a\n" + numbered("  a%d: b\n", n) },
	"field's value": func(n int) string {
		return head + "results:\n- field:\n    currentValue:\n" + numbered("      a%d: b\n", n)
	},
	"aliases as keys": func(n int) string {
		return head + "results:\n- message: &m a\n  tags:\n" + strings.Repeat("    *m : b\n", n)
	},
	"collections as keys": func(n int) string {
		return head + "results:\n- field: {currentValue: {" + strings.Repeat("[a]: b, ", n) + "}}\n"
	},
	"merged keys": func(n int) string {
		return head + "x: &x\n" + numbered("  a%d: b\n", n) + "results:\n- tags:\n    <<: *x\n"
	},
	"aliased tags": func(n int) string {
		return head + "results:\n- tags: &t\n" + numbered("    a%d: b\n", 100) + strings.Repeat("- tags: *t\n", n)
	},
	"results":        func(n int) string { return head + "results:\n" + strings.Repeat("- message: a\n", 50*n) },
	"tag directives": func(n int) string { return numbered("%%TAG !a%d! x\n", n) + "--- {kind: ResourceList}" },
	"directives later": func(n int) string {
		return head + "...\n" + numbered("%%TAG !a%d! x\n", n) + "--- {kind: ResourceList}"
	},
	"values":      func(n int) string { return head + "items: &a [" + strings.Repeat("a,", 100*n) + "]\n" },
	"empty items": func(n int) string { return head + "x: &a b\nitems:\n" + strings.Repeat("-\n", 100*n) },
}
