// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// TestTheIndexLosesNoRule compares what the index finds with what all rules match.
func TestTheIndexLosesNoRule(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	atoms := []string{
		`caller.id == "a"`, `caller.id in ["a", "b"]`, `"g" in caller.groups`, `image.tag.startsWith("v")`,
		`image.tag.startsWith("v1")`, `image.tag == ""`, `evaluator == "pod"`, `!(caller.id == "b")`, `input.bytes > 5`,
		`image.tag.matches("1$")`, `image.tag.matches("^v[0-9]")`, `image.digest == "sha256:a"`,
		`image.registry == "a.io"`, `caller.id.startsWith("")`, `caller.id in []`,
	}
	for range 20 {
		file := File{Default: actionDeny}
		for i := range 66 {
			when := pick(atoms...) + pick(" && ", " || ") + pick(atoms...)
			if random.IntN(2) == 0 {
				when = "(" + when + ")" + pick(" && ", " || ") + pick(atoms...)
			}
			rule := Rule{Name: fmt.Sprintf("r%d", i), Action: actionAllow, When: when}
			if random.IntN(3) == 0 {
				rule.Images = []string{pick("a.io/**", "a.io/x", "*/x", "b.io/*"), pick("a.io/y", "**")}
			}
			file.Rules = append(file.Rules, rule)
		}
		p, err := Compile(&file, Lists{})
		if err != nil {
			t.Fatal(err)
		}
		v := newValues(Facts{
			Caller:     caller.Identity{ID: pick("", "a", "b", "c"), Groups: []string{pick("g", "h"), "i"}},
			Image:      imagename.Name{Repository: pick("a.io/x", "a.io/y", "b.io/z"), Tag: pick("", "v1", "v2", "w")},
			InputBytes: random.Int64N(10), Evaluator: pick("exec", "pod"), Operation: Evaluate,
		})
		found := map[int]bool{}
		p.index.candidates(v, func(i int) bool {
			found[i] = true
			return true
		})
		for i, r := range p.rules {
			if matches, err := r.matches(v); (matches || err != nil) && !found[i] {
				t.Fatalf("rule %+v matches %+v, and the index does not find it", file.Rules[i], v)
			}
		}
	}
}
