// SPDX-License-Identifier: Apache-2.0

package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePorchModule writes the files that pin Porch below the root of a repository.
func writePorchModule(t *testing.T, root string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, "test/cluster/porch")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPorchIsBuiltAgainWhenItsModuleChanges(t *testing.T) {
	const mod = "module porch\n\nrequire " + porchModule + " v1.4.0\n"
	root := t.TempDir()
	var keys []string
	for _, files := range []map[string]string{
		{"go.mod": mod, "go.sum": "one"},
		{"go.sum": "two"},
		{"go.mod": mod + "\nrequire k8s.io/api v0.30.3\n"},
	} {
		writePorchModule(t, root, files)
		c, err := Porch(root)
		if err != nil {
			t.Fatal(err)
		}
		if c.Version != "v1.4.0" {
			t.Errorf("the version is %s, want that of the requirement", c.Version)
		}
		keys = append(keys, c.Key())
	}
	if keys[0] == keys[1] || keys[1] == keys[2] {
		t.Errorf("of three modules two have one key: %v", keys)
	}
}

func TestPorchNeedsItsModule(t *testing.T) {
	for _, test := range []struct {
		reason, want string
		files        map[string]string
	}{
		{"a module that requires something else", "do not name " + porchModule, map[string]string{
			"go.mod": "module porch\n", "go.sum": "",
		}},
		{"a module that is none", "parse the requirements", map[string]string{"go.mod": "mod", "go.sum": ""}},
		{"a module without checksums", "go.sum", map[string]string{"go.mod": "module porch\n"}},
		{"another directory", "go.mod", nil},
	} {
		root := t.TempDir()
		writePorchModule(t, root, test.files)
		if _, err := Porch(root); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.reason, err, test.want)
		}
	}
}

func TestManifestsAreCopiedFromTheModule(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), Manifests)
	for _, name := range []string{
		"api/porchconfig/v1alpha1/config.porch.kpt.dev_repositories.yaml",
		"internal/api/porchinternal/v1alpha1/config.porch.kpt.dev_packagerevs.yaml",
		"deployments/porch/3-porch-server.yaml", "deployments/porch/9-controllers.yaml",
	} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyManifests(from, to); err != nil {
		t.Fatal(err)
	}
	copied, err := filepath.Glob(to + "/*")
	if err != nil || len(copied) != 3 {
		t.Errorf("copied are %v, %v; want all but the controllers", copied, err)
	}
	if err := copyManifests(t.TempDir(), filepath.Join(t.TempDir(), Manifests)); err == nil {
		t.Error("a module without manifests is accepted")
	}
}
