// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestFunctionsGetAnEnvironmentOfTheirOwn has a function show its environment.
func TestFunctionsGetAnEnvironmentOfTheirOwn(t *testing.T) {
	t.Setenv("SECRET", "of the gateway")
	dir := t.TempDir()
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: install(t, dir, "env"), Functions: dir,
		},
	}
	address := startConfigured(t, cfg)
	c := newCaller(t, address)
	resp, err := c.client.EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: image("env"), ResourceList: c.list})
	if err != nil {
		t.Fatal(err)
	}
	list := string(resp.GetResourceList())
	for variable, want := range map[string]bool{
		"PATH=/": true, "HOME=/": true, "GOMAXPROCS=1": true,
		"GOGC=200": true, "SECRET": false,
	} {
		if strings.Contains(list, variable) != want {
			t.Errorf("%s in the function's environment: %v, want %v", variable, !want, want)
		}
	}
}
