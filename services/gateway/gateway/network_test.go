// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestFunctionNetwork has one program connect to a port of this machine: as the function of an image
// that a pattern names, and as that of one that no pattern names.
func TestFunctionNetwork(t *testing.T) {
	target := servetest.Listen(t)
	dir, behaviour := t.TempDir(), "try=socket:tcp,"+target.Addr().String()
	conformance.Install(t, dir, behaviour)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, fmt.Sprintf("functions:\n- function: %q\n  images: [%q, %q]\n",
		behaviour, "example.com/fn/listed:v1", "example.com/fn/unlisted:v1"))
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimePod}, FunctionNetwork: []string{"example.com/fn/list*"},
		Confinement: function.Confinement{Confine: confine.Require},
		Exec: gateway.ExecConfig{
			Config: file, Functions: dir, Queue: 10, PreforkTotal: 4,
			Settings: function.Settings{Prefork: 1},
		},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return gateway.New(cfg, gateway.Services{}, frame)
	}))
	for range 3 { // also with spare processes, which belong to one of the images
		for image, want := range map[string]string{"listed:v1": "done", "unlisted:v1": "operation not permitted"} {
			answer, err := c.client.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: c.list})
			if err != nil || !strings.Contains(string(answer.GetResourceList()), want) {
				t.Errorf("%s: %v, %s, want %q", image, err, answer.GetResourceList(), want)
			}
		}
	}
}
