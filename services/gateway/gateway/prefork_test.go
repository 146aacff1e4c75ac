// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestPreforkFollowsTheConfiguration counts a function's processes while it is used
// and its entry changes.
func TestPreforkFollowsTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	conformance.Install(t, dir, "echo")
	file := filepath.Join(t.TempDir(), "config.yaml")
	entry := func(prefork int) string {
		return fmt.Sprintf("functions: [{function: echo, images: [%q], prefork: %d}]", image("echo"), prefork)
	}
	write(t, file, entry(3))
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: file, Functions: dir, PreforkTotal: 10,
		},
	}
	address := startConfigured(t, cfg)
	if running := testfn.Running(dir); len(running) > 0 {
		t.Errorf("processes %v of a function that was not used", running)
	}
	if err := newCaller(t, address).evaluate(t, image("echo"), ""); err != nil {
		t.Fatal(err)
	}
	testfn.AwaitRunning(t, dir, 3)
	for _, prefork := range []int{1, 2} {
		write(t, file, entry(prefork))
		testfn.AwaitRunning(t, dir, prefork)
	}
	write(t, file, "functions: []")
	testfn.AwaitRunning(t, dir, 0)
}
