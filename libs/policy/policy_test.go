// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// call is what most tests ask about.
func call() policy.Facts {
	return policy.Facts{
		Caller: caller.Identity{
			ID: "spiffe://example.com/ns/team-a/sa/ci", Groups: []string{"team-a", "builders"}, Kind: caller.Certificate,
		},
		Address: "10.0.0.7", Operation: policy.Evaluate, Evaluator: "pod", InputBytes: 1000,
		Image: imagename.Name{Repository: "ghcr.io/team-a/fn", Tag: "v1.2.3"}, Digest: digest,
	}
}

// compile returns the policy of a file.
func compile(t testing.TB, content string, lists policy.Lists) *policy.Policy {
	t.Helper()
	file, err := policy.Parse([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(file, lists)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConditions has a condition over each variable.
func TestConditions(t *testing.T) {
	tests := map[string]struct {
		when string
		want bool
	}{
		"caller.id":              {`caller.id == "spiffe://example.com/ns/team-a/sa/ci"`, true},
		"another caller.id":      {`caller.id == "spiffe://example.com/ns/team-b/sa/ci"`, false},
		"part of caller.id":      {`caller.id.startsWith("spiffe://example.com/ns/team-a/")`, true},
		"caller.kind":            {`caller.kind == "certificate"`, true},
		"anonymous":              {`caller.kind == ""`, false},
		"caller.groups":          {`"team-a" in caller.groups`, true},
		"no such group":          {`"team" in caller.groups`, false},
		"loop over groups":       {`caller.groups.exists(g, g.endsWith("ers"))`, true},
		"caller.address":         {`caller.address.startsWith("10.")`, true},
		"image.name":             {`image.name == "ghcr.io/team-a/fn:v1.2.3"`, true},
		"image.repository":       {`image.repository == "ghcr.io/team-a/fn"`, true},
		"image.registry":         {`image.registry == "ghcr.io"`, true},
		"another image.registry": {`image.registry == "ghcr.io.evil.example"`, false},
		"image.tag":              {`image.tag.matches("^v1\\.[0-9.]+$")`, true},
		"image.digest":           {`image.digest == "` + digest + `"`, true},
		"evaluator":              {`evaluator == "pod"`, true},
		"list of evaluators":     {`evaluator in ["exec", "sandbox"]`, false},
		"operation":              {`operation == "evaluate"`, true},
		"input.bytes":            {`input.bytes > 999 && input.bytes <= 1000`, true},
		"too small":              {`1000 < input.bytes`, false},
		"all at once": {
			`evaluator != "exec" && !(image.tag == "latest") && (image.tag.contains("2") || size(caller.groups) == 7)`, true,
		},
		"arithmetic": {`input.bytes % 7 == 6`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := compile(t, "default: deny\nrules: [{name: r, action: allow, when: '"+tc.when+"'}]", policy.Lists{})
			if got := p.Decide(call()); got.Allow != tc.want || (got.Rule == "r") != tc.want {
				t.Errorf("decided %+v, want the rule to match: %t", got, tc.want)
			}
		})
	}
}

// TestATagBesideADigestIsNoFact has a caller that writes a tag of its choice before the digest of another image: the
// digest alone selects what runs.
func TestATagBesideADigestIsNoFact(t *testing.T) {
	for when, want := range map[string]bool{
		`image.tag == "approved"`:                              false,
		`image.tag == ""`:                                      true,
		`image.name.contains("approved")`:                      false,
		`image.name == "ghcr.io/team-a/fn@` + digest + `"`:     true,
		`image.digest == "` + digest + `" && image.tag == ""`:  true,
		`image.tag.matches("^approved$") || image.tag == "v1"`: false,
	} {
		p := compile(t, "default: deny\nrules: [{name: r, action: allow, when: '"+when+"'}]", policy.Lists{})
		f := call()
		f.Image.Tag, f.Image.Digest, f.Digest = "approved", digest, ""
		if got := p.Decide(f); got.Allow != want {
			t.Errorf("%s decides %+v about %s, want it to hold: %t", when, got, f.Image, want)
		}
	}
}

// TestImages has patterns, which also match other spellings of a registry.
func TestImages(t *testing.T) {
	tests := map[string]struct {
		pattern, repository string
		want                bool
	}{
		"exact":             {"ghcr.io/team-a/fn", "ghcr.io/team-a/fn", true},
		"longer":            {"ghcr.io/team-a/fn", "ghcr.io/team-a/fn2", false},
		"all below":         {"ghcr.io/team-a/**", "ghcr.io/team-a/x/fn", true},
		"one segment":       {"ghcr.io/*/fn", "ghcr.io/team-a/fn", true},
		"not two segments":  {"ghcr.io/*/fn", "ghcr.io/team-a/x/fn", false},
		"in the middle":     {"ghcr.io/**/fn", "ghcr.io/team-a/x/fn", true},
		"foreign registry":  {"ghcr.io/**", "ghcr.io.evil.example/team-a/fn", false},
		"alias of a host":   {"index.docker.io/library/*", "docker.io/library/busybox", true},
		"port meant anyway": {"example.com/**", "example.com:443/fn", true},
		"upper case":        {"Example.COM/**", "example.com/fn", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := compile(t, "default: allow\nrules: [{name: r, action: deny, images: ['"+tc.pattern+"']}]", policy.Lists{})
			f := call()
			f.Image.Repository = tc.repository
			if got := p.Decide(f); got.Allow == tc.want {
				t.Errorf("%s decides %+v about %s, want a match: %t", tc.pattern, got, tc.repository, tc.want)
			}
		})
	}
}

func TestTheFirstMatchCounts(t *testing.T) {
	p := compile(t, `
default: allow
rules:
- {name: others, action: deny, images: [docker.io/**]}
- name: small
  action: allow
  when: input.bytes < 2000
  limits: {concurrency: 3, rate: 2.5, evaluationTime: 7s, network: false}
- {name: the-rest, action: deny, message: Ask the platform team.}
`, policy.Lists{})
	got := p.Decide(call())
	l := got.Limits
	if got.Rule != "small" || !got.Allow || l.Concurrency != 3 || l.Rate != 2.5 || l.EvaluationTime != 7*time.Second ||
		l.Network == nil || *l.Network {
		t.Errorf("decided %+v, want the rule small with its limits", got)
	}
	large := call()
	large.InputBytes = 2000
	if got := p.Decide(large); got.Allow || got.Rule != "the-rest" || got.Reason != "Ask the platform team." {
		t.Errorf("decided %+v, want the last rule with its message", got)
	}
	if got := strings.Join(p.Rules(), " "); got != "others small the-rest default" {
		t.Errorf("the rules are %s", got)
	}
}

func TestWithoutMatchTheDefaultCounts(t *testing.T) {
	for _, action := range []string{"allow", "deny"} {
		p := compile(t, "default: "+action, policy.Lists{})
		if got := p.Decide(call()); got.Rule != policy.DefaultRule || got.Allow != (action == "allow") {
			t.Errorf("default: %s decides %+v", action, got)
		}
	}
	var none *policy.Policy
	if got := none.Decide(call()); !got.Allow {
		t.Errorf("no policy decides %+v", got)
	}
}

// TestFailingConditionsDeny has a condition that fails for some calls.
func TestFailingConditionsDeny(t *testing.T) {
	p := compile(t, `{default: allow, rules: [{name: r, action: allow, when: 'caller.groups[0] == "a"'}]}`, policy.Lists{})
	f := call()
	f.Caller.Groups = nil
	if got := p.Decide(f); got.Allow || got.Rule != "r" || !strings.Contains(got.Reason, "condition failed") {
		t.Errorf("decided %+v, want a denial: whether the rule matches is unknown", got)
	}
}

func TestListsComeFirst(t *testing.T) {
	p := compile(t, "default: deny\nrules: [{name: all, action: allow}]", policy.Lists{
		Deny: []string{"no-hub=docker.io/**", "ghcr.io/bad/*"}, Allow: []string{"docker.io/**", "ghcr.io/**"},
		RequireDigest: true,
	})
	tests := map[string]struct {
		image  imagename.Name
		rule   string
		reason string
	}{
		"denied by name": {imagename.Name{Repository: "docker.io/a/fn", Digest: digest}, "no-hub", "on the deny list"},
		"denied": {
			imagename.Name{Repository: "ghcr.io/bad/fn", Digest: digest}, "ghcr.io/bad/*", "on the deny list",
		},
		"not on the list": {
			imagename.Name{Repository: "quay.io/a/fn", Digest: digest}, "allow-list", "no pattern of the allow list",
		},
		"without digest": {
			imagename.Name{Repository: "ghcr.io/a/fn", Tag: "v1"}, "require-digest", "as ghcr.io/a/fn@sha256:",
		},
		"allowed by digest": {imagename.Name{Repository: "ghcr.io/a/fn", Digest: digest}, "all", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := call()
			f.Image = tc.image
			got := p.Decide(f)
			if got.Rule != tc.rule || got.Allow != (tc.reason == "") || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("decided %+v, want rule %s, reason %q", got, tc.rule, tc.reason)
			}
		})
	}
	list := call()
	list.Operation, list.Evaluator, list.Image = policy.ListTags, "", imagename.Name{Repository: "ghcr.io/a/fn"}
	if got := p.Decide(list); !got.Allow {
		t.Errorf("a list of tags gets %+v: it has no digest", got)
	}
}

func TestDigestsAreResolvedOnlyIfUsed(t *testing.T) {
	for when, want := range map[string]bool{
		`image.digest.startsWith("sha256:e3")`: true, `image.tag == "v1"`: false,
		`size(image.name) > 3 && [image.digest].exists(d, d == "")`: true,
	} {
		p := compile(t, "default: deny\nrules: [{name: r, action: allow, when: '"+when+"'}]", policy.Lists{})
		if got := p.UsesDigest(); got != want {
			t.Errorf("%s uses the digest: %t, want %t", when, got, want)
		}
	}
}
