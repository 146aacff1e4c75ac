// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const original = `# free comment
apiVersion:  v1
kind: ConfigMap
metadata: {name: a}
data:
    text: 'plain' # at the end of a line
    none:
`

const tree = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: p}
-- a.yaml --
` + original + `
-- sub/b/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: b}
-- sub/b/c/d.yaml --
apiVersion: v1
kind: Secret
metadata: {name: d}
-- .git/x/Kptfile --
not a package
`

// writeTree writes the tree to a directory and returns its path.
func writeTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(tree)), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// all returns the resources of a package and of those inside it.
func all(pkg *pkgtree.Package) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, sub := range pkg.Subpackages {
		resources = append(resources, all(sub)...)
	}
	return append(resources, pkg.Resources...)
}

func TestRead(t *testing.T) {
	got, err := pkgtree.Read(writeTree(t))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range all(got.Root) {
		file, index := pkgtree.File(r)
		lines = append(lines, strings.Join([]string{
			r.GetAnnotations()[pkgtree.PackageAnnotation], file, index,
			r.GetName(),
		}, " "))
	}
	want := []string{"/sub/b Kptfile 0 b", "/sub/b c/d.yaml 0 d", "/ Kptfile 0 p", "/ a.yaml 0 a"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("package, file, index, name (-want +got):\n%s", diff)
	}
}

func TestChangesKeepBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(t *testing.T, r *yaml.RNode)
		changed bool
	}{
		"nothing": {"nothing changed", func(*testing.T, *yaml.RNode) {}, false},
		"style": {"another YAML library wrote the same", func(_ *testing.T, r *yaml.RNode) {
			field(r, "text").Style = yaml.DoubleQuotedStyle
			field(r, "none").Value = "null"
		}, false},
		"place of a free comment": {"it depends on what is around the resource", func(_ *testing.T, r *yaml.RNode) {
			r.YNode().Content[0].HeadComment = ""
			r.YNode().HeadComment = "# free comment"
		}, false},
		"value": {"it is the point of functions", func(_ *testing.T, r *yaml.RNode) {
			field(r, "text").Value = "other"
		}, true},
		"type": {"a string that looks like a number is none", func(_ *testing.T, r *yaml.RNode) {
			field(r, "text").Tag = yaml.NodeTagInt
		}, true},
		"line comment": {"setters are written as such", func(_ *testing.T, r *yaml.RNode) {
			field(r, "text").LineComment = "# kpt-set: ${text}"
		}, true},
		"moved comment": {"it is about another field now", func(_ *testing.T, r *yaml.RNode) {
			r.YNode().Content[0].HeadComment, r.YNode().HeadComment = "", ""
			field(r, "none").HeadComment = "# free comment"
		}, true},
		"free comment": {"users read it", func(_ *testing.T, r *yaml.RNode) {
			r.YNode().Content[0].HeadComment += "\n# more"
		}, true},
		"field": {"it is new", func(t *testing.T, r *yaml.RNode) {
			t.Helper()
			if err := r.PipeE(yaml.SetLabel("a", "b")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pkgtree.Read(writeTree(t))
			if err != nil {
				t.Fatal(err)
			}
			resources := all(got.Root)
			tc.change(t, resources[len(resources)-1])
			changes, err := got.Changes(resources)
			if err != nil {
				t.Fatal(err)
			}
			if changed := len(changes) > 0; changed != tc.changed {
				t.Errorf("changes = %q, want changes: %t, because %s", changes, tc.changed, tc.reason)
			}
		})
	}
}

// field returns the value of a field of a ConfigMap's data.
func field(r *yaml.RNode, name string) *yaml.Node {
	return r.Field("data").Value.Field(name).Value.YNode()
}
