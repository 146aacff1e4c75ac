// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

func TestVisible(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain text":             {"héllo\t世界\n", "héllo\t世界\n"},
		"emoji":                  {"❤\ufe0f", "❤\ufe0f"},
		"right-to-left override": {"a\u202eb", `a\u202eb`},
		"isolate":                {"\u2066x\u2069", `\u2066x\u2069`},
		"zero-width space":       {"pay\u200bpal", `pay\u200bpal`},
		"zero-width joiner":      {"a\u200db", `a\u200db`},
		"byte order mark":        {"\ufeffa", `\ufeffa`},
		"line separator":         {"a\u2028b", `a\u2028b`},
		"Hangul filler":          {"a\u3164", `a\u3164`},
		"tag":                    {"a\U000e0041", `a\U000e0041`},
		"variation selector":     {"a\U000e0100", `a\U000e0100`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Visible(tc.in); got != tc.want {
				t.Errorf("Visible(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}
