// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// image returns the image of the function of that behaviour.
func image(behaviour string) string {
	return "example.com/fn/" + strings.ReplaceAll(behaviour, "=", "-") + ":v1"
}

// start runs a gateway with functions of all behaviours.
func start(t *testing.T, behaviours ...string) (address, configFile string) {
	t.Helper()
	return startPrefork(t, t.TempDir(), 0, behaviours...)
}

// startPrefork runs a gateway with its functions in dir that keeps so many processes of
// each started.
func startPrefork(t *testing.T, dir string, prefork int, behaviours ...string) (address, configFile string) {
	t.Helper()
	configFile = install(t, dir, behaviours...)
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: configFile, Functions: dir, Queue: 1000, PreforkTotal: 2 * len(behaviours),
			Settings: function.Settings{Prefork: prefork},
		},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return startConfigured(t, cfg), configFile
}

// install puts functions of all behaviours into dir, and returns a configuration file that has them.
func install(t *testing.T, dir string, behaviours ...string) (configFile string) {
	t.Helper()
	var entries strings.Builder
	entries.WriteString("functions:\n")
	for _, b := range behaviours {
		conformance.Install(t, dir, b)
		fmt.Fprintf(&entries, "- function: %s\n  images: [%q]\n", b, image(b))
	}
	configFile = filepath.Join(t.TempDir(), "config.yaml")
	write(t, configFile, entries.String())
	return configFile
}

// startConfigured runs a gateway that is composed with no other service, and returns its address.
func startConfigured(t *testing.T, cfg gateway.Config) (address string) {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return gateway.New(cfg, gateway.Services{}, frame)
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	for name, prefork := range map[string]int{"without prefork": 0, "with prefork": 2} {
		t.Run(name, func(t *testing.T) { testConformance(t, prefork) })
	}
}

func testConformance(t *testing.T, prefork int) {
	dir := t.TempDir()
	address, _ := startPrefork(t, dir, prefork, conformance.Behaviours()...)
	conformance.Run(t, conformance.Target{
		Serve: func(_ *testing.T, behaviour string) conformance.Function {
			return conformance.Function{Address: address, Image: image(behaviour), Dir: dir}
		},
		NamesFunctions: true,
		Texts: conformance.Texts{
			Exit1: "Failed to execute function %[1]q: exit status 1 (failed: one resource is invalid); " +
				"structured results: [error] apps/v1/Deployment/shop/cart spec.replicas: replicas must not be negative",
			Exit1Garbage: "Failed to execute function %[1]q: exit status 1 (failed halfway)",
			Signal:       "Failed to execute function %[1]q: signal: killed (about to die)",
		},
	})
}
