// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

func TestPatterns(t *testing.T) {
	patterns, err := imagename.ParsePatterns([]string{
		"ghcr.io/a/fn-*", "docker.io/b/**", "Index.Docker.io/c/d", "r.io:443/*/x",
	})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]bool{
		"ghcr.io/a/fn-get:v1": true, "ghcr.io/a/fn-get/x": false, "ghcr.io/a/other": false, "b/c/d:v2": true,
		"evil.example/ghcr.io/a/fn-get": false, "docker.io/b": false,
		// a registry has several names
		"registry-1.docker.io/b/c": true, "c/d": true, "docker.io:443/c/d": true, "r.io/a/x": true, "r.io:5000/a/x": false,
	} {
		name, err := imagename.Parse(image, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := patterns.Match(name); got != want {
			t.Errorf("%s matches: %v, want %v", image, got, want)
		}
	}
	if (imagename.Patterns{}).Match(imagename.Name{Repository: "docker.io/b/c"}) {
		t.Error("no patterns match something")
	}
	for _, bad := range []string{"", "a b", "a@sha256:0"} {
		if _, err := imagename.ParsePatterns([]string{bad}); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}

// TestPatternsThatMatchNothing has mistakes by which a rule would have no effect.
func TestPatternsThatMatchNothing(t *testing.T) {
	for pattern, says := range map[string]string{
		"fn": "begin it with the registry", "fn:v1": "begin it with the registry", "*": "begin it with the registry",
		"ghcr.io/a/fn:v1": "leave the tag out", "localhost:5000/fn:*": "leave the tag out", "**": "", "**/fn": "",
		"*:5000/fn": "", "ghcr.io**": "", "localhost/fn": "", "LocalHost/fn": "", "[::1]/x": "", "*/x": "", "gh*/x": "",
		"nephio/**": "begin it with the registry", "library/busybox": "begin it with the registry",
		"/fn": "begin it with the registry", "ghcr.io/": "end it with **", "ghcr.io/org/": "end it with **",
		"docker.io/busybox": "docker.io/library/NAME", "Index.docker.io:443/*": "docker.io/library/NAME",
		"docker.io/**": "", "docker.io/**fn": "", "docker.io/*/fn": "", "docker.io/library/busybox": "",
	} {
		_, err := imagename.ParsePattern(pattern)
		if (err == nil) != (says == "") || (err != nil && !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", pattern, err, says)
		}
	}
}
