// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/process"
)

// TestCommandsFailWithoutACluster needs no rights. Commands that need them are tested on clusters.
func TestCommandsFailWithoutACluster(t *testing.T) {
	for line, want := range map[string]string{
		"status":              "there is no such cluster",
		"logs kubelet":        "there is no such cluster",
		"status -o yaml":      `output "yaml": want text or json`,
		"logs":                "accepts 1 arg(s)",
		"status --name Upper": "want a lower-case letter",
		"unknown":             "unknown command",
	} {
		root := rootCommand()
		root.SetOut(new(bytes.Buffer))
		root.SetArgs(append([]string{"--name", "no-such-cluster"}, strings.Fields(line)...))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", line, err, want)
		}
	}
}

// TestRunSaysWhatFailed uses a compiler that fails, with its own exit status.
func TestRunSaysWhatFailed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho no space left >&2\nexit 3\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	status := run([]string{"tool", "ko", "--cache", filepath.Join(dir, "cache")}, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit status %d, and it says %q", status, &stderr)
	}
}

func TestLogsKnowTheComponents(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kubelet"} {
		if err := os.WriteFile(filepath.Join(dir, name+".log"), []byte("log of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printLog(&out, dir, "kubelet"); err != nil || out.String() != "log of kubelet" {
		t.Errorf("got %q, %v", &out, err)
	}
	for _, name := range []string{"docker", "../etcd", ""} {
		if err := printLog(&out, dir, name); err == nil || !strings.Contains(err.Error(), "etcd, kubelet") {
			t.Errorf("log of %q: error %v, want one that names the logs there are", name, err)
		}
	}
}

func TestStatusIsAVerdict(t *testing.T) {
	for state, fails := range map[string]bool{ready: false, starting: true, dead: true} {
		now := status{
			Info: bed.Info{Name: "one"}, State: state,
			Components: []process.Status{{Name: "etcd", State: process.Running}},
		}
		var text, encoded strings.Builder
		if err := now.write(&text, "text"); err != nil || !strings.Contains(text.String(), "cluster one is "+state) {
			t.Errorf("%s is printed as %q, %v", state, &text, err)
		}
		if err := now.write(&encoded, "json"); err != nil || !strings.Contains(encoded.String(), `"state": "`+state+`"`) {
			t.Errorf("%s is encoded as %q, %v", state, &encoded, err)
		}
		if err := now.verdict(); (err != nil) != fails {
			t.Errorf("%s: %v", state, err)
		}
	}
}
