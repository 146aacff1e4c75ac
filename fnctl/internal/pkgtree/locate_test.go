// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const located = `# a comment
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    example.com/a.b: x
spec:
  template:
    containers:
    - name: app
      image: app:v1
    - name: proxy
      image: proxy:v1
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
`

// TestLinesOfFields finds fields of resources in a file, in the forms that functions use for their paths.
func TestLinesOfFields(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(located), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := pkgtree.ReadFlat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file  string
		index int
		field string
		want  int
	}{
		{"a.yaml", 0, "", 3},
		{"a.yaml", 0, "metadata.annotations.example.com/a.b", 8},
		{"a.yaml", 0, ".spec.template.containers[1].image", 15},
		{"a.yaml", 0, "spec.template.containers.[name=proxy].image", 15},
		{"a.yaml", 0, "spec.template.containers[name=app].ports", 12},
		{"a.yaml", 0, "spec.replicas", 10},
		{"a.yaml", 1, "metadata.namespace", 19},
		{"a.yaml", 2, "metadata", 1},
		{"none.yaml", 0, "metadata", 1},
	} {
		if got := tree.Line(tc.file, tc.index, tc.field); got != tc.want {
			t.Errorf("line of %s[%d] %q is %d, want %d", tc.file, tc.index, tc.field, got, tc.want)
		}
	}
	if file, index := tree.FileOf("v1", "Service", "", "web"); file != "a.yaml" || index != 1 {
		t.Errorf("the Service is in %q at %d", file, index)
	}
	if file, _ := tree.FileOf("v1", "Pod", "", ""); file != "" {
		t.Errorf("there is a Pod in %q", file)
	}
}
