// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
)

const policyFile = `
default: deny
signers:
- {name: release, keyFiles: [cosign.pub]}
rules:
- {name: signed, images: [a.io/signed/*], action: allow, signers: [release]}
- name: team-a
  images: [ghcr.io/team-a/**]
  when: caller.id == "spiffe://example.com/ns/a/sa/ci" && "builders" in caller.groups && input.bytes < 100
  action: allow
  limits: {concurrency: 4, rate: 2.5, evaluationTime: 30s, network: false}
- {name: tokens, when: 'caller.kind == "token" && caller.address == "10.0.0.1"', action: allow}
- {name: by-digest, when: image.digest == "sha256:x" && evaluator == "pod", action: allow}
- {name: lists, when: operation == "list-tags", action: allow}
- {name: never, images: [ghcr.io/team-a/**], when: operation == "lists", action: deny}
`

const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZcl9u601YB8Ia732iWnJpHP2DHaL
5RRI7pvEuZRTO3vGBKIz9ik8ufCV6mfJuxhJnpgZ6iBa9iQVvLP2FpATZg==
-----END PUBLIC KEY-----
`

// TestPolicyTest has each flag.
func TestPolicyTest(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	for name, content := range map[string]string{"policy.yaml": policyFile, "cosign.pub": publicKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		args string
		code int
		says []string
	}{
		"allowed with limits": {
			"--image ghcr.io/team-a/fn:v1 --caller spiffe://example.com/ns/a/sa/ci --group builders " +
				"--evaluator pod --expect allow",
			0,
			[]string{"pod        allow  rule team-a (4 at a time, 2.5 in a second, for 30s, without network)"},
		},
		"too large": {
			"--image ghcr.io/team-a/fn:v1 --caller spiffe://example.com/ns/a/sa/ci --group builders --input-bytes 100",
			0,
			[]string{"exec       deny   rule default: no rule of the policy allows it", "sandbox    deny", "pod        deny"},
		},
		"token": {
			"--image fn:v1 --caller a --caller-kind token --caller-address 10.0.0.1", 0, []string{"allow  rule tokens"},
		},
		"digest": {
			"--image a.io/fn:v1 --digest sha256:x", 0, []string{"exec       deny", "pod        allow  rule by-digest"},
		},
		"signed": {
			"--image a.io/signed/fn:v1 --signer release", 0,
			[]string{
				"exec       deny   rule signed: a.io/signed/fn:v1 has to be signed by release. Found: a local binary",
				"sandbox    allow  rule signed", "pod        allow  rule signed",
			},
		},
		"unsigned": {
			"--image a.io/signed/fn:v1 --evaluator pod --digest sha256:x", 0,
			[]string{
				"deny   rule signed: a.io/signed/fn:v1@sha256:x has to be signed by release. Found: nothing, without --signer",
			},
		},
		"no signer":  {"--image a.io/fn:v1 --signer releases", 2, []string{`has no signer "releases"`}},
		"list":       {"--image a.io/fn:v1 --list-tags", 0, []string{"list-tags  allow  rule lists"}},
		"prefix":     {"--image fn:v1 --image-prefix ghcr.io/team-a", 0, []string{"deny   rule default"}},
		"unexpected": {"--image a.io/fn:v1 --expect allow", 2, []string{"the policy does not allow the call 3 times of 3"}},
		"warning":    {"--image a.io/fn:v1", 0, []string{"warning: rule never never matches"}},
		"no image":   {"", 2, []string{"name the function's image"}},
		"no kind":    {"--image a.io/fn --caller-kind password", 2, []string{"it has to be certificate or token"}},
		"no such":    {"--image a.io/fn --evaluator pods", 2, []string{"it has to be one of exec, sandbox, pod"}},
		"no action":  {"--image a.io/fn --expect perhaps", 2, []string{"it has to be allow or deny"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			env := cli.Environment{Stdin: strings.NewReader(policyFile), Stdout: &out, Stderr: &out}
			args := append([]string{"policy", "test", file}, strings.Fields(tc.args)...)
			if code := cli.Run(t.Context(), env, args); code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, out.String())
			}
			for _, want := range tc.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
		})
	}
	var out bytes.Buffer
	env := cli.Environment{Stdin: strings.NewReader("default: deny\nrule: []"), Stdout: &out, Stderr: &out}
	if code := cli.Run(t.Context(), env, []string{"policy", "test", "-", "--image", "a.io/fn"}); code != 2 ||
		!strings.Contains(out.String(), "field rule not found") {
		t.Errorf("a broken file: exit code %d, %s", code, out.String())
	}
}
