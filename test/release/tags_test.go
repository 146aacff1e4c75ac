// SPDX-License-Identifier: Apache-2.0

// Package release tests what a release consists of.
package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const version = "v0.0.1-test"

// TestNoSecondRelease: a published version is never another commit.
func TestNoSecondRelease(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "../..", nil, "git", "clone", "--quiet", "--shared", ".", clone)
	run(t, clone, nil, "git", "tag", "libs/"+version)
	for _, arg := range []string{version, "1.2", "v1"} {
		cmd := exec.Command("build/tags.sh", arg)
		cmd.Dir = clone
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("tags.sh %s succeeds: %s", arg, out)
		}
	}
	if tags := run(t, clone, nil, "git", "tag"); strings.TrimSpace(tags) != "libs/"+version {
		t.Errorf("tags are left: %q", tags)
	}
}

// TestReleaseTagIsPushedAlone runs the documented `git push` commands. GitHub starts no workflow for a push of more
// than three tags, so the release's tag follows the modules' tags in a push of its own.
func TestReleaseTagIsPushedAlone(t *testing.T) {
	clone, origin := t.TempDir(), t.TempDir()
	run(t, origin, nil, "git", "init", "--quiet", "--bare")
	run(t, clone, nil, "git", "init", "--quiet")
	run(t, clone, nil, "git", "remote", "add", "origin", origin)
	run(t, clone, nil, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "--message=a")
	modules := []string{"fnctl/v0.1.0", "libs/kube/v0.1.0", "libs/v0.1.0"}
	for _, tag := range append(modules, "libs/v0.0.9", "v0.1.0") {
		run(t, clone, nil, "git", "tag", tag)
	}
	doc, err := os.ReadFile("../../docs/releases.md")
	pushes := regexp.MustCompile(`(?m)^git push .*`).FindAllString(string(doc), -1)
	if err != nil || len(pushes) != 2 {
		t.Fatalf("releases.md pushes by %q (%v), want two commands", pushes, err)
	}
	run(t, clone, nil, "bash", "-c", pushes[0])
	if got := strings.Fields(run(t, origin, nil, "git", "tag")); !slices.Equal(got, modules) {
		t.Errorf("%s pushes %q, want %q", pushes[0], got, modules)
	}
	run(t, clone, nil, "bash", "-c", pushes[1])
	if got := strings.Fields(run(t, origin, nil, "git", "tag")); !slices.Equal(got, append(modules, "v0.1.0")) {
		t.Errorf("after %s the tags are %q, want v0.1.0 in addition to %q", pushes[1], got, modules)
	}
}

// run returns what a command writes to its standard output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, stderr.String())
	}
	return string(out)
}
