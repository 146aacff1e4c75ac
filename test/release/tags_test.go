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

const (
	repository = "github.com/krm-function-runner/function-runner"
	version    = "v0.0.1-test"
)

// TestGoInstall tags a release in a clone of this repository's last commit, and installs fnctl from it
// as users do. The clone takes the place of GitHub.
func TestGoInstall(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "../..", nil, "git", "clone", "--quiet", "--shared", ".", clone)
	tags := strings.Fields(run(t, clone, nil, filepath.Join(clone, "build/tags.sh"), version))
	for _, want := range []string{version, "libs/" + version, "fnctl/" + version} {
		if !strings.Contains(strings.Join(tags, " "), want) {
			t.Errorf("the tags are %q, without %s", tags, want)
		}
	}
	bin := t.TempDir()
	env := fromClone(t, clone, bin)
	run(t, bin, env, "go", "install", repository+"/fnctl@"+version)
	if got := run(t, bin, nil, filepath.Join(bin, "fnctl"), "--version"); !strings.Contains(got, version) {
		t.Errorf("fnctl --version prints %q, want %s", got, version)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	run(t, clone, nil, "git", "worktree", "add", "--quiet", "--detach", tree, "fnctl/"+version)
	run(t, filepath.Join(tree, "fnctl"), env, "go", "list", "-mod=readonly", "-deps", ".") // fails without hashes
	if dirty := run(t, clone, nil, "git", "status", "--porcelain"); dirty != "" {
		t.Errorf("tagging has changed files:\n%s", dirty)
	}
}

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

// fromClone returns variables with which Go takes our modules from the clone, the others from its
// cache of downloads, and keeps all apart from that cache.
func fromClone(t *testing.T, clone, bin string) []string {
	t.Helper()
	env := strings.Split(strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE", "GOPROXY")), "\n")
	return []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + clone + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://" + repository,
		"GOPROXY=file://" + filepath.Join(env[0], "cache/download") + "," + env[1],
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=" + os.Getenv("GOFLAGS") + " -modcacherw -trimpath",
		"GOPRIVATE=" + repository,
		"GOWORK=off", "CGO_ENABLED=0", "GOBIN=" + bin,
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
