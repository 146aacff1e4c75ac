// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
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
	workflow, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil || !strings.Contains(string(workflow), "cosign sign --yes <images.txt") {
		t.Errorf("the workflow does not sign the images that ko builds (%v)", err)
	}
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
