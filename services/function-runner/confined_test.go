// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// bundled are the functions of functions/config.yaml, by the module that builds them.
var bundled = map[string]string{
	"apply-replacements": "../../functions",
	"apply-setters":      "../../functions/apply-setters",
	"set-namespace":      "../../functions",
	"starlark":           "../../functions",
}

// TestExamplesAreRenderedByConfinedFunctions renders every example through a gateway that confines
// functions, or does not start. The examples use every bundled function.
func TestExamplesAreRenderedByConfinedFunctions(t *testing.T) {
	const examples = "../../examples"
	demo := exec.CommandContext(t.Context(), filepath.Join(examples, "demo.sh"))
	demo.Env = append(demo.Environ(),
		"FNCTL_ADDRESS="+startConfined(t), "FNCTL="+gobuild.Program(t, "../../fnctl", "."))
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	kptfiles, err := filepath.Glob(filepath.Join(examples, "*", "Kptfile"))
	if err != nil || len(kptfiles) == 0 {
		t.Fatalf("no examples, %v", err)
	}
	var used bytes.Buffer
	for _, path := range kptfiles {
		name := filepath.Base(filepath.Dir(path))
		if !strings.Contains(string(out), "=== "+name+"\n") {
			t.Errorf("the example %s is not rendered by demo.sh", name)
		}
		kptfile, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used.Write(kptfile)
	}
	for name := range bundled {
		if !strings.Contains(used.String(), "/"+name+":") {
			t.Errorf("no example uses the function %s", name)
		}
	}
	if functions := configured(t); functions != len(bundled) {
		t.Errorf("functions/config.yaml has %d functions, want the %d of this test", functions, len(bundled))
	}
}

// startConfined starts a gateway with the bundled functions, and returns its address.
func startConfined(t *testing.T) string {
	t.Helper()
	t.Setenv("FNR_CONFINE", "require")
	functions := t.TempDir()
	for name, module := range bundled {
		pkg := "github.com/kptdev/krm-functions-catalog/functions/go/" + name
		if err := gobuild.To(filepath.Join(functions, name), module, pkg); err != nil {
			t.Fatal(err)
		}
	}
	s, err := settings.Load([]string{
		"--disable-runtimes=pod", "--functions", functions, "--config", "../../functions/config.yaml",
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return gateway.New(s.Gateway, gateway.Services{}, frame)
	})
}

// configured returns how many functions functions/config.yaml has.
func configured(t *testing.T) int {
	t.Helper()
	config, err := os.ReadFile("../../functions/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(config), "- function: ")
}
