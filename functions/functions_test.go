// SPDX-License-Identifier: Apache-2.0

package functions_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// catalog is the repository of the bundled functions' images.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// TestConfigNamesTheBundledReleases compares config.yaml with what go.mod builds: an image name
// must not map to a program of another version.
func TestConfigNamesTheBundledReleases(t *testing.T) {
	want := map[string][]string{}
	for _, file := range []string{"go.mod", "apply-setters/go.mod"} {
		maps.Copy(want, bundledImages(t, file))
	}
	got := configuredImages(t)
	if !maps.EqualFunc(want, got, slices.Equal) {
		t.Errorf("images by function in config.yaml:\n%v\nbut go.mod builds:\n%v", got, want)
	}
}

// bundledImages returns the image names of each tool in a go.mod: its release and
// that release's minor tag.
func bundledImages(t *testing.T, file string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	images := map[string][]string{}
	for _, tool := range mod.Tool {
		name, version := path.Base(tool.Path), versions[tool.Path]
		images[name] = []string{catalog + name + ":" + version, catalog + name + ":" + semver.MajorMinor(version)}
	}
	return images
}

// configuredImages returns config.yaml's image names by function.
func configuredImages(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Functions []struct {
			Function string   `json:"function"`
			Images   []string `json:"images"`
		} `json:"functions"`
	}
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		t.Fatal(err)
	}
	images := map[string][]string{}
	for _, f := range config.Functions {
		images[f.Function] = append(images[f.Function], f.Images...)
	}
	return images
}
