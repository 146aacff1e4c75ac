// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// FuzzConditionsAreWhatCELTakesThemFor compares conditions that are evaluated natively with CEL's
// interpreter, and warnings with decisions.
func FuzzConditionsAreWhatCELTakesThemFor(f *testing.F) {
	for _, seed := range []string{
		`caller.id == "a"`, `"a" != caller.id || input.bytes >= 5`, `!(image.tag.startsWith("v")) && evaluator in ["pod"]`,
		`"g" in caller.groups`, `image.tag.contains("")`, `5 > input.bytes && image.tag.endsWith("1") || false`,
		`image.digest.matches("a+")`, `caller.groups[0] == "g"`, `caller.groups.exists(g, g == caller.id)`,
		`image.repository in [image.registry, "a"]`, `evaluator == "nothing"`, `evaluator == "pod" && evaluator == "exec"`,
		`size(caller.groups) > 1 ? image.tag == "a" : true`, `image.tag < "w"`, `input.bytes in [1, 2]`,
		`image.tag.matches("^v(?i)V1$") || image.tag.matches("^v1[.]*")`, `image.tag.matches("(?m)^1")`,
		`image.tag.matches("(v1)+1?") && !image.tag.matches("v|w")`, `image.tag.matches("^\ufffd")`,
		`image.registry == "A.io" || image.repository.startsWith("a.io:443/")`, `image.repository.startsWith("A")`,
		`"g" in image.signers || image.signers.exists(s, s > "h")`,
	} {
		f.Add(seed, "a", "v1", "g", int64(5))
	}
	env, err := newEnv()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, id, tag, group string, bytes int64) {
		if len(text) > MaxConditionBytes || text == "" {
			return
		}
		c, err := compileCondition(env, text)
		if err != nil {
			return
		}
		ast, _ := env.Compile(text)
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		for _, evaluator := range domains[fieldEvaluator] {
			v := newValues(Facts{
				Caller: caller.Identity{ID: id, Groups: []string{group}, Kind: caller.Token}, InputBytes: bytes,
				Signers:   []string{group},
				Evaluator: evaluator, Operation: Evaluate, Image: imagename.Name{Repository: "a.io/" + id, Tag: tag},
			})
			want, _, wantErr := program.Eval(v)
			got, err := c.holds(v)
			if (err != nil) != (wantErr != nil) || err == nil && want.Value() != got {
				t.Fatalf("%s is %v, %v of %+v, and %v, %v in CEL", text, got, err, v, want, wantErr)
			}
			if got && (c.never != "" || c.contradicts(c.pinned()) || c.otherName() != "") {
				t.Fatalf("%s holds, and was said to hold for no call", text)
			}
		}
	})
}

// TestFixedTextsOfExpressions has what texts begin with, and what they have, by which expressions are found and tried.
func TestFixedTextsOfExpressions(t *testing.T) {
	for text, want := range map[string][2]string{
		"^v1[.]": {"v1.", ""}, "^v1.*-rc$": {"v1", "-rc"}, "v1": {"", "v1"}, "^[a-z]+-fn[0-9]": {"", "-fn"}, "": {},
		"^(?i)v1": {}, "(?m)^v1": {"", "v1"}, "^v1|w1": {}, "^(v1)": {}, "^v1*": {"v", ""}, "^v1?": {"v", ""},
		"\ufffd": {}, `\Av`: {"v", ""}, `^\Qa.b\E`: {"a.b", ""},
	} {
		e, ok := newExpression(fieldTag, text).(expression)
		if got := [2]string{e.prefix, e.literal}; !ok || got != want {
			t.Errorf("%s has %q, want %q", text, got, want)
		}
	}
}

// FuzzParse has any file. One that compiles decides about any call.
func FuzzParse(f *testing.F) {
	f.Add([]byte("default: deny\nrules:\n- {name: a, action: allow, when: 'input.bytes > 1', images: ['a.io/**']}"))
	f.Add([]byte("default: allow\nrules: [{name: b, action: deny, message: m}]"))
	f.Add([]byte("default: allow\nrules: [{name: c, action: allow, " +
		"limits: {rate: 1, concurrency: 2, evaluationTime: 1s}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse(content)
		if err != nil {
			return
		}
		p, err := Compile(file, Lists{})
		if err != nil {
			return
		}
		got := p.Decide(Facts{Operation: Evaluate, Image: imagename.Name{Repository: "a.io/fn", Tag: "v1"}})
		if got.Rule == "" || got.Rule == DefaultRule && got.Allow != (file.Default == actionAllow) {
			t.Fatalf("decided %+v by %s", got, content)
		}
	})
}
