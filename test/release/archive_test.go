// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestManifestsOfARelease runs the commands by which goreleaser packs the manifests, in a clone.
func TestManifestsOfARelease(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "../..", nil, "git", "clone", "--quiet", "--shared", ".", clone)
	var config struct {
		Before struct{ Hooks []string }
	}
	readYAML(t, "../../.goreleaser.yaml", &config)
	for _, hook := range config.Before.Hooks {
		if !strings.HasPrefix(hook, "helm ") {
			hook = strings.NewReplacer("{{ .Version }}", version[1:], "{{ .Tag }}", version).Replace(hook)
			args := strings.Fields(hook)
			run(t, clone, nil, args[0], args[1:]...)
		}
	}
	archive := filepath.Join(clone, ".build/release/deploy_"+version[1:]+".tar.gz")
	manifests := run(t, clone, nil, "tar", "-xzOf", archive, "--wildcards", "deploy/*.yaml")
	if strings.Contains(manifests, "latest #") || !strings.Contains(manifests, "wrapper-server:"+version) {
		t.Errorf("the manifests do not name the images of %s", version)
	}
	if dirty := run(t, clone, nil, "git", "status", "--porcelain"); dirty != "" {
		t.Errorf("packing has changed files:\n%s", dirty)
	}
}

// TestImagesOfAReleaseAreSigned: goreleaser publishes fnctl's image, and the workflow the images that ko builds.
func TestImagesOfAReleaseAreSigned(t *testing.T) {
	var config struct {
		Images []struct{ ID string }     `json:"dockers_v2"`
		Signs  []struct{ Args []string } `json:"docker_signs"`
	}
	readYAML(t, "../../.goreleaser.yaml", &config)
	if len(config.Images) == 0 || len(config.Signs) != 1 ||
		!slices.Contains(config.Signs[0].Args, "${artifact}@${digest}") {
		t.Errorf("goreleaser publishes the images %v, and signs them by %v", config.Images, config.Signs)
	}
	steps := releaseJob(t).Steps
	signing := slices.IndexFunc(steps, func(s step) bool { return strings.Contains(s.Run, "cosign sign --yes") })
	goreleaser := slices.IndexFunc(steps, func(s step) bool { return strings.HasPrefix(s.Uses, "goreleaser/") })
	if signing < 0 || signing > goreleaser {
		t.Errorf("step %d signs the images that ko builds, want a step before goreleaser's, which is %d: "+
			"a release without its images must not be published", signing, goreleaser)
	}
}

// TestReleaseWritesToItsOwnRepositoryOnly: the workflow's token is refused by others.
func TestReleaseWritesToItsOwnRepositoryOnly(t *testing.T) {
	var config map[string]any
	readYAML(t, "../../.goreleaser.yaml", &config)
	files := map[string]string{"homebrew_casks": ".build/dist/homebrew", "krews": ".build/dist/krew"}
	for list, dir := range files {
		entries, _ := config[list].([]any)
		if len(entries) == 0 {
			t.Errorf("goreleaser makes no %s", list)
		}
		for _, entry := range entries {
			if skip := entry.(map[string]any)["skip_upload"]; skip != true {
				t.Errorf("%s: skip_upload is %v, want true", list, skip)
			}
		}
		if !slices.ContainsFunc(releaseJob(t).Steps, func(s step) bool {
			return strings.HasPrefix(s.Uses, "actions/upload-artifact@") && strings.Contains(s.With["path"], dir)
		}) {
			t.Errorf("no step of the workflow keeps %s for maintainers", dir)
		}
	}
}

// TestImagesPrintsNamesOnly: the workflow signs every word that `make images` prints. A script takes the place of go.
func TestImagesPrintsNamesOnly(t *testing.T) {
	clone, bin := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	run(t, "../..", nil, "git", "clone", "--quiet", "--shared", ".", clone)
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/bash
case $1 in
build)
  while [[ $1 != -o ]]; do shift; done
  mkdir -p "$(dirname "$2.")"
  touch "$2" ;;
run) echo registry.example/fnr/gateway:v1 ;;
*) exec ` + goCommand + ` "$@" ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=0"} // as without make around it
	got := run(t, clone, env, "make", "images", "REPO=registry.example/fnr", "TAG=v1")
	if want := "registry.example/fnr/gateway:v1\n"; got != want {
		t.Errorf("make images prints %q, want %q", got, want)
	}
}

// TestPipesOfTheReleaseFail: GitHub sets pipefail only where a workflow names the shell.
func TestPipesOfTheReleaseFail(t *testing.T) {
	if shell := releaseJob(t).Defaults.Run.Shell; shell != "bash" {
		t.Errorf("the default shell is %q, want bash", shell)
	}
}

// job is a job of a workflow.
type job struct {
	Defaults struct{ Run struct{ Shell string } }
	Steps    []step
}

type step struct {
	Uses, Run string
	With      map[string]string
}

// releaseJob returns the job that publishes a release.
func releaseJob(t *testing.T) job {
	t.Helper()
	var workflow struct{ Jobs map[string]job }
	readYAML(t, "../../.github/workflows/release.yaml", &workflow)
	return workflow.Jobs["release"]
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
