// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/policy"
)

// key is a public key.
const key = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZcl9u601YB8Ia732iWnJpHP2DHaL
5RRI7pvEuZRTO3vGBKIz9ik8ufCV6mfJuxhJnpgZ6iBa9iQVvLP2FpATZg==
-----END PUBLIC KEY-----`

// signers is the beginning of a policy with two signers.
var signers = "default: deny\nsigners:\n- name: release\n  keys: |\n" + indented +
	"- name: audit\n  keys: |\n" + indented

var indented = "    " + strings.ReplaceAll(key, "\n", "\n    ") + "\n"

// TestSignersOfARule has a rule that requires one of two signers.
func TestSignersOfARule(t *testing.T) {
	p := compile(t, signers+`rules:
- {name: open, images: [a.io/open/*], action: allow}
- {name: signed, images: [a.io/*], action: allow, signers: [release, audit], limits: {concurrency: 3}}
`, policy.Lists{})
	tests := map[string]struct {
		repository, evaluator, operation string
		signers                          []string
		found                            string
		needs, allow                     bool
		says                             string
	}{
		"signed":         {"a.io/fn", "pod", policy.Evaluate, []string{"audit"}, "", true, true, ""},
		"signed by both": {"a.io/fn", "sandbox", policy.Evaluate, []string{"audit", "release"}, "", true, true, ""},
		"unsigned": {
			"a.io/fn", "pod", policy.Evaluate, nil, "no signature", true, false,
			"a.io/fn:v1.2.3@" + digest + " has to be signed by release or audit. Found: no signature",
		},
		"signed by another": {
			"a.io/fn", "pod", policy.Evaluate, []string{"team"}, "", true, false, "Found: signed by team",
		},
		"not verified": {"a.io/fn", "pod", policy.Evaluate, nil, "", true, false, "no signature was verified"},
		"a local binary": {
			"a.io/fn", "exec", policy.Evaluate, []string{"release"}, "", true, false, "a local binary, which has no signature",
		},
		"tags":             {"a.io/fn", "", policy.ListTags, nil, "", false, true, ""},
		"an earlier rule":  {"a.io/open/fn", "pod", policy.Evaluate, nil, "", false, true, ""},
		"no rule about it": {"b.io/fn", "pod", policy.Evaluate, nil, "", false, false, "no rule of the policy allows it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := call()
			f.Image.Repository, f.Evaluator, f.Operation = tc.repository, tc.evaluator, tc.operation
			f.Signers, f.Found = tc.signers, tc.found
			if p.NeedsSigners(f) != tc.needs {
				t.Errorf("needs signers: %t, want %t", !tc.needs, tc.needs)
			}
			d := p.Decide(f)
			if d.Allow != tc.allow || !strings.Contains(d.Reason, tc.says) || !tc.allow && d.Limits != (policy.Limits{}) {
				t.Errorf("decided %+v, want %t with %q", d, tc.allow, tc.says)
			}
		})
	}
	if got := p.Signers(); len(got) != 2 || got[0].Name != "release" || len(got[0].Keys) != 1 || !p.UsesSigners() {
		t.Errorf("signers %+v", got)
	}
	var none *policy.Policy
	if none.NeedsSigners(call()) || none.Signers() != nil {
		t.Error("no policy needs signers")
	}
}

// TestSignersInConditions has the variable, natively and in CEL.
func TestSignersInConditions(t *testing.T) {
	for when, want := range map[string]bool{
		`"release" in image.signers`:                             true,
		`"audit" in image.signers`:                               false,
		`!("audit" in image.signers) && evaluator == "pod"`:      true,
		`image.signers.exists(s, s.startsWith("rel"))`:           true,
		`size(image.signers) == 0`:                               false,
		`image.signers == ["release"] && image.tag != "v1"`:      true,
		`"release" in image.signers && "audit" in caller.groups`: false,
	} {
		p := compile(t, signers+"rules: [{name: r, images: [ghcr.io/**], action: allow, when: '"+when+"'}]", policy.Lists{})
		f := call()
		f.Signers = []string{"release"}
		isOpen := !strings.Contains(when, `"audit" in caller.groups`) // the caller is not in this group
		if got := p.Decide(f); got.Allow != want || p.NeedsSigners(f) != isOpen {
			t.Errorf("%s decides %+v, want %t, and needs the signers: %t", when, got, want, !isOpen)
		}
		f.Image.Repository = "b.io/fn"
		if p.NeedsSigners(f) {
			t.Errorf("%s needs the signers of an image that it is not about", when)
		}
		f = call()
		f.Evaluator, f.Signers = "exec", []string{"release"}
		if got := p.Decide(f); strings.HasPrefix(when, `"release"`) && got.Allow {
			t.Errorf("%s holds for a local binary", when)
		}
	}
}

// TestDigestsAndSignersAreNeededTogether has rules by digest before and after one by signer.
func TestDigestsAndSignersAreNeededTogether(t *testing.T) {
	p := compile(t, signers+`rules:
- {name: known, images: [ghcr.io/**], when: image.digest == "`+digest+`", action: allow}
- {name: signed, images: [ghcr.io/**], action: allow, signers: [release]}
`, policy.Lists{})
	f := call()
	if p.NeedsSigners(f) {
		t.Error("the digest decides, and a signature is needed")
	}
	if f.Digest = ""; !p.NeedsDigest(f) {
		t.Error("the digest is not needed")
	}
	if f.Digest = "sha256:other"; !p.NeedsSigners(f) {
		t.Error("a signature is not needed")
	}
}

func TestPoliciesWithSignersThatAreRejected(t *testing.T) {
	rules := "rules: [{name: r, action: allow, signers: [release]}]\n"
	tests := map[string]struct{ content, says string }{
		"unknown signer": {"default: deny\n" + rules, `rule r: signers has "release"`},
		"a rule that denies": {
			signers + "rules: [{name: r, action: deny, signers: [release]}]", "signers are for rules that allow",
		},
		"no name":     {"default: deny\nsigners: [{keys: a}]", "signers[0].name"},
		"name twice":  {"default: deny\nsigners: [{name: a, keys: b}, {name: a, keys: b}]", "signers[1].name"},
		"no keys":     {"default: deny\nsigners: [{name: a}]", "signer a: it has neither keys nor keyFiles"},
		"broken keys": {"default: deny\nsigners: [{name: a, keys: b}]", "signer a: keys: it has text that is not"},
		"too many":    {"default: deny\nsigners: [" + strings.Repeat("{},", 21) + "]", "21 signers"},
		"a field":     {"default: deny\nsigners: [{name: a, key: b}]", "field key not found"},
	}
	for name, tc := range tests {
		file, err := policy.Parse([]byte(tc.content))
		if err == nil {
			_, err = policy.Compile(file, policy.Lists{})
		}
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

// TestKeyFilesAreBesideThePolicy reads them, and rejects other paths.
func TestKeyFilesAreBesideThePolicy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(file string) string {
		return "default: deny\nsigners: [{name: a, keyFiles: ['" + file + "']}]\n"
	}
	write("cosign.pub", key)
	file, content, err := policy.Read(write("policy.yaml", with("cosign.pub")))
	if err != nil || !strings.Contains(string(content), key) || !strings.Contains(string(content), "keyFiles") {
		t.Fatalf("read %q, %v", content, err)
	}
	p, err := policy.Compile(file, policy.Lists{})
	if err != nil || len(p.Signers()) != 1 || len(p.Signers()[0].Keys) != 1 {
		t.Errorf("signers %+v, %v", p.Signers(), err)
	}
	write("large.pub", strings.Repeat(key, 100))
	for name, says := range map[string]string{
		"missing.pub": "read the key file", "../cosign.pub": "beside the policy", "/etc/passwd": "beside the policy",
		"": "beside the policy", "..": "beside the policy", "large.pub": "keys",
	} {
		file, _, err := policy.Read(write("policy.yaml", with(name)))
		if err == nil {
			_, err = policy.Compile(file, policy.Lists{})
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}
