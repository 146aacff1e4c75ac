// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestPolicyIsAskedForLocalBinaries has the file and the short forms of rules.
func TestPolicyIsAskedForLocalBinaries(t *testing.T) {
	dir := t.TempDir()
	config, policy := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "policy.yaml")
	var entries []string
	for _, fn := range []string{"echo", "cat", "listed"} {
		conformance.Install(t, dir, "echo")
		entries = append(entries, fmt.Sprintf("{function: echo, images: [%q]}", image(fn)))
	}
	write(t, config, "functions: ["+strings.Join(entries, ", ")+"]")
	write(t, policy, `
default: allow
rules:
- {name: no-cat, action: deny, images: [example.com/fn/cat], when: evaluator == "exec", message: No cats.}
- {name: no-lists, action: deny, images: [example.com/fn/echo], when: operation == "list-tags"}
`)
	address := startConfigured(t, gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Policy: gateway.PolicyConfig{File: policy, Deny: []string{"by-list=example.com/fn/listed"}},
		Exec:   gateway.ExecConfig{Config: config, Functions: dir, Queue: 10, Settings: function.Settings{Concurrency: 1}},
	})
	tests := map[string]struct {
		image, tag string
		code       codes.Code
		says       string
	}{
		"allowed": {image("echo"), "", codes.OK, ""},
		"denied": {
			image("cat"), "", codes.PermissionDenied, `is rejected by the rule "no-cat" of the policy: No cats.`,
		},
		"listed":       {image("listed"), "", codes.PermissionDenied, `rule "by-list"`},
		"list of tags": {image("echo"), ">=1", codes.PermissionDenied, `rule "no-lists"`},
		"exact tag":    {image("echo"), "v1", codes.OK, ""},
		"not served":   {image("missing"), "", codes.NotFound, "not found"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := newCaller(t, address).evaluate(t, tc.image, tc.tag)
			if status.Code(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v with %q", err, tc.code, tc.says)
			}
		})
	}
}
