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

// TestPolicyIsAskedBeforeAnyEvaluator has images that a local binary serves, and one that no evaluator serves.
func TestPolicyIsAskedBeforeAnyEvaluator(t *testing.T) {
	dir, digest := t.TempDir(), "@sha256:"+strings.Repeat("0", 64)
	config := filepath.Join(dir, "config.yaml")
	conformance.Install(t, dir, "echo")
	write(t, config, fmt.Sprintf("functions: [{function: echo, images: [%q, %q, example.com/fn/echo%s]}]",
		image("echo"), image("listed"), digest))
	tests := map[string]struct {
		policy     gateway.PolicyConfig
		image, tag string
		code       codes.Code
		says       string
	}{
		"no policy": {gateway.PolicyConfig{}, image("echo"), "", codes.OK, ""},
		"allowed":   {gateway.PolicyConfig{Allow: []string{"example.com/fn/*"}}, image("echo"), "", codes.OK, ""},
		"not allowed": {
			gateway.PolicyConfig{Allow: []string{"example.com/other/*"}},
			image("echo"), "", codes.PermissionDenied,
			`rule "allow-list"`,
		},
		"denied": {
			gateway.PolicyConfig{Deny: []string{"by-list=example.com/fn/listed"}},
			image("listed"), "", codes.PermissionDenied,
			`rule "by-list"`,
		},
		"list of tags": {
			gateway.PolicyConfig{Deny: []string{"by-list=example.com/fn/listed"}},
			image("listed"), ">=1",
			codes.PermissionDenied, `rule "by-list"`,
		},
		"not served": {
			gateway.PolicyConfig{Deny: []string{"by-list=example.com/fn/missing"}},
			image("missing"), "",
			codes.PermissionDenied, `rule "by-list"`,
		},
		"no digest": {
			gateway.PolicyConfig{RequireDigest: true}, image("echo"), "", codes.PermissionDenied, `rule "require-digest"`,
		},
		"digest": {gateway.PolicyConfig{RequireDigest: true}, "example.com/fn/echo" + digest, "", codes.OK, ""},
		"a tag replaces the digest": {
			gateway.PolicyConfig{RequireDigest: true},
			"example.com/fn/echo" + digest, "v1", codes.PermissionDenied,
			`rule "require-digest"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			address := startConfigured(t, gateway.Config{
				MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod}, Policy: tc.policy,
				Exec: gateway.ExecConfig{
					Config: config, Functions: dir, Queue: 10, Settings: function.Settings{Concurrency: 1},
				},
			})
			err := newCaller(t, address).evaluate(t, tc.image, tc.tag)
			if status.Code(err) != tc.code || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v, want %v with %q", err, tc.code, tc.says)
			}
		})
	}
}
