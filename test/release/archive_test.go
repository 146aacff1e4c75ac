// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"path/filepath"
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
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
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
