// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/build/images/chart"
)

// TestWrite writes a chart. (test/release renders it with Helm.)
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	objects := "kind: Service\n---\nkind: Deployment\n"
	if err := chart.Write(dir, "v1.2.3", "registry.example/fnr", map[string][]byte{"porch": []byte(objects)}); err != nil {
		t.Fatal(err)
	}
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	slices.Sort(files)
	want := []string{"Chart.yaml", "overlays/porch.yaml", "templates/objects.yaml", "values.yaml"}
	if diff := cmp.Diff(want, files); diff != "" || err != nil {
		t.Fatalf("%v (-want, +written):\n%s", err, diff)
	}
	for name, keys := range map[string]map[string]any{
		"Chart.yaml":  {"version": "1.2.3", "appVersion": "v1.2.3", "name": chart.Name},
		"values.yaml": {"registry": "registry.example/fnr"},
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.UnmarshalStrict(content, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key, value := range keys {
			if got[key] != value {
				t.Errorf("%s has %s: %v, want %v", name, key, got[key], value)
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "templates/objects.yaml"))
	if err != nil || strings.Contains(string(content), "HOME") {
		t.Errorf("the template has no repository (%v):\n%s", err, content)
	}
}
