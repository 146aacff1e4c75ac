// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

func TestCanonical(t *testing.T) {
	for spelling, want := range map[string]string{
		"ghcr.io": "ghcr.io", "GHCR.IO": "ghcr.io", "ghcr.io:443": "ghcr.io", "Ghcr.io:0443": "ghcr.io",
		"ghcr.io:":  "ghcr.io",
		"r.io:5000": "r.io:5000", "R.io:05000": "r.io:5000", "r.io:80": "r.io:80", "localhost": "localhost",
		"docker.io": "docker.io", "index.docker.io": "docker.io", "Registry-1.Docker.io:443": "docker.io",
		"registry.hub.docker.com": "docker.io",
		"index.docker.io:5000":    "docker.io:5000", "docker.io.evil.example": "docker.io.evil.example",
		"10.0.0.5:443": "10.0.0.5", "[::ffff:10.0.0.5]:5000": "10.0.0.5:5000", "[FD00:0::5]:5000": "[fd00::5]:5000",
		"[::1]":   "[::1]",
		"fd00::5": "[fd00::5]", "::1": "[::1]", "x::": "x::", "x:0:0": "x:0:0",
	} {
		if got := imagename.CanonicalRegistry(spelling); got != want {
			t.Errorf("%q is %q, want %q", spelling, got, want)
		}
	}
}

// FuzzCanonical has names that are compared: a name's canonical one is its own.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		"r.io", "R.io:443", "r.io:0443", "x::", "x:0:0", "[::1]:5000", "::1", "fe80::", "[1.2.3.4]:80", "index.docker.io",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if once := imagename.CanonicalRegistry(name); imagename.CanonicalRegistry(once) != once {
			t.Errorf("the canonical name of %q is %q, and that name's is %q", name, once, imagename.CanonicalRegistry(once))
		}
	})
}
