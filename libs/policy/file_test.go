// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/policy"
)

// load parses and compiles a file.
func load(content string) error {
	file, err := policy.Parse([]byte(content))
	if err != nil {
		return err
	}
	_, err = policy.Compile(file, policy.Lists{})
	return err
}

// TestBrokenFiles has an error for each field.
func TestBrokenFiles(t *testing.T) {
	rule := func(fields string) string { return "default: deny\nrules: [{name: r, action: allow, " + fields + "}]" }
	tests := map[string]struct {
		content, says string
	}{
		"empty":           {"", "it is empty"},
		"no YAML":         {"default: [", "not the YAML of a policy"},
		"no default":      {"rules: []", "default is"},
		"wrong default":   {"default: perhaps", `default is "perhaps"`},
		"unknown field":   {"default: deny\nrule: []", "field rule not found"},
		"field of a rule": {rule("image: [a]"), "field image not found"},
		"second document": {"default: deny\n---\ndefault: allow", "more than one document"},
		"no name":         {"default: deny\nrules: [{action: allow}]", "rules[0].name"},
		"wrong name":      {"default: deny\nrules: [{name: A_b, action: allow}]", "rules[0].name"},
		"name of default": {"default: deny\nrules: [{name: default, action: allow}]", "name of another rule"},
		"name twice":      {"default: deny\nrules: [{name: a, action: deny}, {name: a, action: deny}]", "rules[1].name"},
		"no action":       {"default: deny\nrules: [{name: a}]", "rule a: action is"},
		"wrong action":    {"default: deny\nrules: [{name: a, action: reject}]", "rule a: action is"},
		"message":         {rule("message: hello"), "message is for rules that deny"},
		"limits": {
			"default: deny\nrules: [{name: a, action: deny, limits: {rate: 1}}]", "limits are for rules that allow",
		},
		"concurrency":      {rule("limits: {concurrency: 0}"), "limits.concurrency is 0"},
		"rate":             {rule("limits: {rate: -1}"), "limits.rate is -1"},
		"no rate":          {rule("limits: {rate: .nan}"), "limits.rate is NaN"},
		"evaluationTime":   {rule("limits: {evaluationTime: 0s}"), "limits.evaluationTime is 0s"},
		"no time":          {rule("limits: {evaluationTime: long}"), "not the YAML of a policy"},
		"network":          {rule("limits: {network: maybe}"), "not the YAML of a policy"},
		"pattern":          {rule("images: ['a@sha256:x']"), "images: \"a@sha256:x\" is not a pattern"},
		"syntax":           {rule("when: 'caller.id =='"), "rule r: when: it is not a condition in CEL"},
		"unknown variable": {rule("when: 'caller.name == \"a\"'"), "undeclared reference to 'caller"},
		"type":             {rule("when: 'input.bytes == \"a\"'"), "no matching overload"},
		"text":             {rule("when: image.tag"), "it has to be true or false, but is of type string"},
		"fails always":     {rule("when: '1 / 0 == 1'"), "it fails for each call"},
		"cost": {
			rule("when: 'caller.groups.all(a, caller.groups.all(b, caller.groups.all(c, a != b + c)))'"), "units",
		},
		"too many rules":     {"default: deny\nrules: [" + strings.Repeat("{},", policy.MaxRules+1) + "]", "5001 rules"},
		"too many patterns":  {rule("images: [" + strings.Repeat("a/b,", 101) + "]"), "101 patterns"},
		"condition too long": {rule("when: '" + strings.Repeat(" ", policy.MaxConditionBytes+1) + "'"), "when has"},
		"message too long":   {rule("message: " + strings.Repeat("a", 1025)), "message has 1025 bytes"},
		"file too long":      {strings.Repeat("#", policy.MaxFileBytes+1), "may have up to"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := load(tc.content); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// TestRulesThatNeverMatchAreTold also has rules that may match.
func TestRulesThatNeverMatchAreTold(t *testing.T) {
	tests := map[string]struct {
		rules string
		says  string // empty for no warning
	}{
		"fine": {`{name: a, when: 'image.tag == "x"'}, {name: b, when: 'image.tag == "y"'}`, ""},
		"after all": {
			`{name: a}, {name: b, when: 'image.tag == "y"'}`, "rule b never matches: rule a matches the same",
		},
		"twice": {
			`{name: a, when: 'image.tag == "y"'}, {name: b, when: 'image.tag  == "y"'}`, "rule a matches the same",
		},
		"narrower": {
			`{name: a, when: 'image.tag == "y"'}, {name: b, when: 'image.tag == "y" && evaluator == "pod"'}`, "rule b",
		},
		"wider": {
			`{name: a, when: 'image.tag == "y" && evaluator == "pod"'}, {name: b, when: 'image.tag == "y"'}`, "",
		},
		"other images": {`{name: a, images: [a.io/**]}, {name: b, images: [b.io/**]}`, ""},
		"images within": {
			`{name: a, images: [a.io/**]}, {name: b, images: [a.io/x/*], when: 'evaluator == "pod"'}`, "rule b",
		},
		"one image within": {`{name: a, images: [a.io/**]}, {name: b, images: [a.io/x, b.io/x]}`, ""},
		"same pattern":     {`{name: a, images: ['a.io/*/x']}, {name: b, images: ['a.io/*/x']}`, "rule b"},
		"exact in pattern": {`{name: a, images: ['a.io/*/x']}, {name: b, images: ['a.io/y/x']}`, "rule b"},
		"prefix": {
			`{name: a, when: 'image.tag.startsWith("v")'}, {name: b, when: 'image.tag.startsWith("v1")'}`, "rule b",
		},
		"implied": {`{name: a, when: 'image.tag.startsWith("v")'}, {name: b, when: 'image.tag == "v1"'}`, "rule b"},
		"false":   {`{name: a, when: '1 > 2'}`, "rule a never matches: its condition is false for each call"},
		"false with an unknown": {
			`{name: a, when: 'image.tag == "x" && false'}`, "rule a never matches: its condition is false for each call",
		},
		"contradiction": {`{name: a, when: 'image.tag == "x" && image.tag == "y"'}`, "no call fulfils its condition"},
		"misspelled":    {`{name: a, when: 'evaluator == "pods"'}`, "no call fulfils its condition"},
		"another name": {
			`{name: a, when: 'image.registry == "Index.docker.io" && evaluator == "pod"'}`, `image.registry is "docker.io"`,
		},
		"another beginning": {
			`{name: a, when: 'image.repository.startsWith("a.io:443/b")'}`, `image.repository begins with "a.io/b"`,
		},
		"its own name":        {`{name: a, when: 'image.repository.startsWith("index.d")'}`, ""},
		"misspelled in lists": {`{name: a, when: 'caller.kind in ["cert", "tokens"]'}`, "no call fulfils its condition"},
		"no operation": {
			`{name: a, when: '!(operation in ["evaluate", "list-tags"])'}`, "no call fulfils its condition",
		},
		"interpreted": {
			`{name: a, when: 'image.tag.matches("^v") && evaluator == "pod"'}, {name: b, when: 'image.tag.matches("^w")'}`, "",
		},
		"interpreted twice": {
			`{name: a, when: 'image.tag.matches("^v")'}, {name: b, when: 'image.tag.matches("^v")'}`, "rule b",
		},
		"groups": {`{name: a, when: '"g" in caller.groups'}, {name: b, when: '"h" in caller.groups'}`, ""},
		"sizes":  {`{name: a, when: 'input.bytes > 1'}, {name: b, when: 'input.bytes > 2'}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			content := strings.ReplaceAll("default: deny\nrules: ["+tc.rules+"]", "{name", "{action: allow, name")
			got := compile(t, content, policy.Lists{}).Warnings()
			if tc.says == "" && len(got) > 0 || tc.says != "" && (len(got) != 1 || !strings.Contains(got[0], tc.says)) {
				t.Errorf("warns %q, want %q", got, tc.says)
			}
		})
	}
}

// TestAListOfDigestsIsNotForAll has a list whose rule matches some calls only.
func TestAListOfDigestsIsNotForAll(t *testing.T) {
	lists := policy.Lists{RequireDigest: true, Allow: []string{"a.io/**"}}
	p := compile(t, "default: deny\nrules: [{name: r, action: allow}]", lists)
	if got := p.Warnings(); len(got) > 0 {
		t.Errorf("warns %q", got)
	}
}
