// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// counting is a part of a condition that counts evaluations of the condition.
type counting struct {
	constant
	evaluated *int
}

func (c counting) eval(*values) bool {
	*c.evaluated++
	return true
}

// workSigners is the beginning of a policy with a signer.
const workSigners = `default: deny
signers:
- name: release
  keys: |
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEAqUbxmaV2v5n8G5V84iIvMSqiLYFTPdK/EC4vGuaN8c0=
    -----END PUBLIC KEY-----
rules:
`

// TestWorkDoesNotGrowWithRules has 1,000 rules of which few can match a call, and asks all that one evaluation asks. It
// counts the conditions that are evaluated.
func TestWorkDoesNotGrowWithRules(t *testing.T) {
	f := Facts{
		Caller: caller.Identity{ID: "team-x", Groups: []string{"group-x"}}, Operation: Evaluate, Evaluator: Pod,
		Image: imagename.Name{Repository: "a.io/fn", Tag: "w7-x"},
	}
	for _, rule := range []string{
		`when: 'caller.id == "team-%d"'`, `when: 'caller.id in ["team-%d", "another"] && input.bytes > 1'`,
		`when: '"group-%d" in caller.groups'`, `when: 'image.tag.startsWith("w%d-") && input.bytes > 1'`,
		`when: 'image.tag.matches("^w%d-[0-9]+$")'`, `images: ["b.io/team-%d/**"], when: 'input.bytes > 1'`,
	} {
		var many strings.Builder
		for i := range 999 {
			fmt.Fprintf(&many, "- {name: r%d, action: allow, %s}\n", i, fmt.Sprintf(rule, i))
		}
		rules := compiled(t, many.String()).rules
		for _, last := range []string{
			`when: input.bytes >= 0`, `when: input.bytes >= 0, signers: [release]`,
			`when: '"release" in image.signers || input.bytes >= 0'`, `when: 'image.digest != "" || input.bytes >= 0'`,
			`images: [b.io/**], when: 'image.digest != "" && "release" in image.signers'`,
		} {
			p := compiled(t, "- {name: last, action: allow, "+last+"}\n")
			evaluated := p.counted(rules)
			p.NeedsDigest(f)
			p.NeedsSigners(f)
			p.ReadsSigners(f)
			if got := p.Decide(f); got.Rule != "last" && p.rules[len(p.rules)-1].images == nil {
				t.Errorf("%s decided, want the last rule", got.Rule)
			}
			if *evaluated > 8 {
				t.Errorf("%s and %s: %d conditions evaluated, want at most two for each question", rule, last, *evaluated)
			}
		}
	}
}

// compiled returns the policy of rules.
func compiled(t *testing.T, rules string) *Policy {
	t.Helper()
	file, err := Parse([]byte(workSigners + rules))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(file, Lists{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counted puts rules before those of a policy, and returns how many conditions are evaluated from then on.
func (p *Policy) counted(before []*rule) *int {
	evaluated := new(int)
	all := slices.Concat(before, p.rules)
	p.rules = nil
	for _, r := range all {
		r := *r
		r.condition.parts = append([]node{counting{evaluated: evaluated}}, r.condition.parts...)
		p.rules = append(p.rules, &r)
	}
	p.index = newIndex(p.rules)
	return evaluated
}
