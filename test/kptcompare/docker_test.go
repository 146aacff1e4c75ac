// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInDockersPlace runs unchanged programs whose functions fnctl runs in the place of docker: on this machine, and
// at a gateway. Files, output and exit code are those with functions that are bare processes.
func TestInDockersPlace(t *testing.T) {
	if !withKpt {
		return // make kpt-compare builds the programs
	}
	links := t.TempDir()
	install := exec.Command(filepath.Join(programs, "fnctl"), "docker", "install", links)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	registry := startRegistry(t)
	store := sharedDir(t)
	local := []string{
		"PATH=" + links + ":" + programs + ":/usr/sbin:/usr/bin:/sbin:/bin",
		"FNR_SANDBOX_STORE=" + store, "DOCKER_CONFIG=" + t.TempDir(),
		"FNR_MIRRORS=example.com=" + registry, "FNR_INSECURE_REGISTRIES=" + registry,
	}
	ways := map[string][]string{
		"gateway": {local[0], "FNCTL_ADDRESS=" + gateway},
		"local":   local,
		"direct":  append([]string{"FNR_SANDBOX=direct"}, local...),
	}
	for name, script := range dockerScripts {
		t.Run(name, func(t *testing.T) {
			bare := runAs(t, script, []string{"PATH=" + programs + ":/usr/bin:/bin"})
			for way, variables := range ways {
				if diff := difference(t, bare, runAs(t, script, variables)); diff != "" {
					t.Errorf("%s:\n%s", way, diff)
				}
			}
		})
	}
}

// dockerScripts run programs in the directory that testdata/docker.txtar contains. kustomize accepts no validator that
// is a container, unless it fails: it compares the styles of resources before and after.
var dockerScripts = map[string]string{
	"kustomize build":         "kustomize build --enable-alpha-plugins web",
	"kustomize build, failed": "kustomize build --enable-alpha-plugins failing",
	"kpt fn render":           "kpt fn render package --results-dir results",
	"kpt fn render, failed":   "kpt fn render rejected --results-dir results",
	"kpt fn eval":             "kpt fn eval package -i example.com/label:v1 -- value=eval",
	"kpt fn eval, network": "export FNR_FUNCTION_NETWORK=example.com/*; " +
		"kpt fn eval package -i example.com/noop:v1 --network",
	"kpt fn eval, podman": "ln -s $(command -v docker) podman; export PATH=$PWD:$PATH KPT_FN_RUNTIME=podman; " +
		"kpt fn eval package -i example.com/log:v1; rm podman",
	"skaffold render": "skaffold render --offline --digest-source=none --interactive=false 2>/dev/null",
}

// durations are what kpt prints of the time that functions took.
var durations = regexp.MustCompile(`in [0-9.]+(ms|s)`)

// runAs runs a script in a new directory, and returns its files with output and exit code among them.
func runAs(t *testing.T, script string, variables []string) files {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/docker.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, before := parseArchive(string(text))
	before.write(t, dir)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"HOME=" + filepath.Join(dir, "home"), "LC_ALL=C", "FUNCTIONS=" + filepath.Join(programs, "functions"),
	}, variables...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	after := readFiles(t, dir)
	tidy := func(s string) string { return strings.ReplaceAll(durations.ReplaceAllString(s, "in 0s"), dir, "DIR") }
	after["stdout"] = tidy(stdout.String())
	after["stderr"] = tidy(stderr.String())
	after["exit"] = cmd.ProcessState.String()
	t.Logf("%s\n%s%s%s", script, after["stdout"], after["stderr"], after["exit"])
	return after
}

// sharedDir returns a directory that the users of sandboxes can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
