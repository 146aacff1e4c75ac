// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/build/images/release"
)

// root is the repository's root, relative to this directory.
const root = "../../.."

// decode reads a YAML file of the repository.
func decode[T any](t *testing.T, name string) (content T) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(root, name))
	if err == nil {
		err = yaml.Unmarshal(file, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// artifacts are images that skaffold builds.
type artifacts struct {
	Artifacts []struct {
		Image string
		Ko    struct{ Dir string }
	}
}

// TestEveryProgramHasAnImage compares the names of the programs, and the directories of their
// modules, in `make images`, skaffold and the manifests.
func TestEveryProgramHasAnImage(t *testing.T) {
	want := map[string]string{"wrapper-server": "wrapper-server"}
	mains, err := filepath.Glob(filepath.Join(root, "services/*/main.go"))
	if err != nil || len(mains) == 0 {
		t.Fatalf("there are no services (%v)", err)
	}
	for _, file := range mains {
		name := filepath.Base(filepath.Dir(file))
		want[name] = "services/" + name
	}

	published := map[string]string{}
	for _, p := range release.Programs() {
		published[p.Name] = path.Join(p.Module, p.Package)
	}
	if diff := cmp.Diff(want, published); diff != "" {
		t.Errorf("make images builds others (-there, +built):\n%s", diff)
	}

	config := decode[struct {
		Build    artifacts
		Profiles []struct{ Build artifacts }
	}](t, "skaffold.yaml")
	built := map[string]string{}
	all := config.Build.Artifacts
	for _, p := range config.Profiles {
		all = append(all, p.Build.Artifacts...)
	}
	for _, a := range all {
		built[path.Base(a.Image)] = a.Ko.Dir
	}
	if diff := cmp.Diff(want, built); diff != "" {
		t.Errorf("skaffold builds others (-there, +built):\n%s", diff)
	}

	component := decode[struct {
		Images []struct{ Name, NewName string }
	}](t, "deploy/components/images/kustomization.yaml")
	var named []string
	for _, image := range component.Images {
		named = append(named, image.Name)
		if path.Base(image.NewName) != image.Name {
			t.Errorf("the manifests call %s %s", image.Name, image.NewName)
		}
	}
	slices.Sort(named)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), named); diff != "" {
		t.Errorf("the manifests name others (-there, +named):\n%s", diff)
	}
}

// TestKoGetsItsSettings checks that ko, which looks for its settings in the directory of the
// module that it builds, gets those at the root, and the image's base in spite of them. It rejects -toolexec in
// GOFLAGS, which it must not get.
func TestKoGetsItsSettings(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	ko := release.Ko{
		Root: root, Env: []string{"PATH=/usr/bin:/bin", "GOFLAGS=-trimpath '-toolexec=env GOGC=400'"},
		Command: func(string, ...string) []string {
			script := `echo "$KO_DEFAULTBASEIMAGE $KO_DOCKER_REPO $GOFLAGS" >"$0" && cat "$KO_CONFIG_PATH" >>"$0"`
			return []string{"sh", "-c", script, asked}
		},
	}
	if err := ko.Build(t.Context(), release.Programs()[0],
		release.Target{Repository: "repository", Base: "base", Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	first, settings, _ := strings.Cut(string(content), "\n")
	if first != "base repository -trimpath " || !strings.Contains(settings, "defaultLdflags:") {
		t.Errorf("ko gets base, repository and GOFLAGS %q, and the settings\n%s", first, settings)
	}
}
