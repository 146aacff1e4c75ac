// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/policy"
)

// BenchmarkDecide has 1,000 rules, of which the last matches.
func BenchmarkDecide(b *testing.B) {
	for name, rule := range map[string]string{
		"images":      `images: ["ghcr.io/team-%d/**"]`,
		"wildcards":   `images: ["ghcr.io/*/fn-%d"]`,
		"conditions":  `when: 'caller.id == "spiffe://example.com/ns/team-%d/sa/ci" && image.registry == "ghcr.io"'`,
		"groups":      `when: '"team-0%d" in caller.groups || caller.id == "ci"'`,
		"mixed":       `images: ["ghcr.io/team-%d/**"], when: 'image.tag.matches("^v[0-9]+$")'`,
		"sizes":       `when: 'input.bytes > 5%d00 && evaluator == "pod"'`,
		"expressions": `when: 'image.tag.matches("^[a-w]+-%d")'`,
		"beginnings":  `when: 'image.tag.matches("^w%d[.]")'`,
	} {
		b.Run(name, func(b *testing.B) {
			var rules strings.Builder
			rules.WriteString("default: deny\nrules:\n")
			for i := range 999 {
				fmt.Fprintf(&rules, "- {name: r%d, action: allow, %s}\n", i, fmt.Sprintf(rule, i))
			}
			rules.WriteString("- {name: last, action: allow}\n")
			p := compile(b, rules.String(), policy.Lists{})
			f := call()
			b.ReportAllocs()
			for b.Loop() {
				if got := p.Decide(f); got.Rule != "last" {
					b.Fatalf("decided %+v", got)
				}
			}
		})
	}
}

// BenchmarkSigners has 1,000 rules of which the last has a signer, and asks all that an evaluation asks.
func BenchmarkSigners(b *testing.B) {
	for name, rule := range map[string]string{
		"conditions":  `when: 'caller.id == "spiffe://example.com/ns/team-%d/sa/ci"'`,
		"expressions": `when: 'image.tag.matches("^[a-w]+-%d")'`,
	} {
		b.Run(name, func(b *testing.B) {
			var rules strings.Builder
			rules.WriteString(signers + "rules:\n")
			for i := range 999 {
				fmt.Fprintf(&rules, "- {name: r%d, action: allow, %s}\n", i, fmt.Sprintf(rule, i))
			}
			rules.WriteString("- {name: last, action: allow, signers: [release]}\n")
			p := compile(b, rules.String(), policy.Lists{})
			f := call()
			f.Signers = []string{"release"}
			b.ReportAllocs()
			for b.Loop() {
				if p.NeedsDigest(f) || !p.NeedsSigners(f) || p.Decide(f).Rule != "last" {
					b.Fatal("decided wrongly")
				}
			}
		})
	}
}
