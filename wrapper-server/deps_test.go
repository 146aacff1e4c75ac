// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// banned are packages that must not get into function pods, each with the reason.
var banned = map[string]string{
	"k8s.io/":                                "the wrapper server does not use Kubernetes, and each pod start copies it",
	"sigs.k8s.io/":                           "kyaml alone adds 10 MB; libs/resourcelist judges lists without it",
	"github.com/google/go-containerregistry": "it talks to no registry",
	"testing":                                "tests stay out of programs",
}

func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		for prefix, reason := range banned {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("%s is linked in: %s", dep, reason)
			}
		}
	}
}

// maxSize is the bound for the stripped binary, in bytes: init containers copy it at
// each pod start.
const maxSize = 20_000_000

func TestSize(t *testing.T) {
	info, err := os.Stat(gobuild.Program(t, ".", "."))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("the binary has %d bytes, more than %d", info.Size(), maxSize)
	}
}
