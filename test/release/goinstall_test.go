// SPDX-License-Identifier: Apache-2.0

//go:build goinstall

package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const repository = "github.com/krm-function-runner/function-runner"

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
