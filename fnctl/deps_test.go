// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// banned are packages that must not get into fnctl, each with the reason.
var banned = map[string]string{
	"k8s.io/client-go": "fnctl asks the gateway, which reports pods",
	"k8s.io/api":       "it would double the size of the program",
	"testing":          "tests stay out of programs",

	"github.com/krm-function-runner/function-runner/services/pod-manager": "functions run on this machine without pods",
}

func TestDependencies(t *testing.T) { gobuild.Without(t, banned) }

// TestOtherSystems builds nothing: it checks that fnctl runs no functions where there are no sandboxes, and
// has none of the packages that do not build there.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
		list.Env = append(os.Environ(), "GOOS="+system) //nolint:forbidigo // the environment of the test's own Go
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", system, err, out)
		}
		if strings.Contains(string(out), "/services/") {
			t.Errorf("%s: fnctl has packages of services, which need Linux", system)
		}
	}
}

// maxSize is the bound for the stripped binary, in bytes.
const maxSize = 40_000_000

func TestSize(t *testing.T) { gobuild.AtMost(t, maxSize) }
