package pkgtree_test

import (
	"os"
	"path/filepath"
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
		lines = append(lines, strings.Join([]string{r.GetAnnotations()[pkgtree.PackageAnnotation], file, index, r.GetName()}, " "))
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
			r.YNode().Content[0].HeadComment, r.YNode().HeadComment = "", "# free comment"
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
		"free comment": {"somebody is to read it", func(_ *testing.T, r *yaml.RNode) {
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

func TestApplyChecksEverythingFirst(t *testing.T) {
	dir := writeTree(t)
	err := pkgtree.Apply(dir, []pkgtree.Change{
		{Path: "new/file.yaml", After: []byte("new")},
		{Path: ".git/x/Kptfile", After: []byte("overwritten")},
	})
	if err == nil {
		t.Error("Apply overwrote a file that it did not know")
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Error("Apply wrote a file before it checked the others")
	}
}

// TestApplyKeepsWhatOthersWrote has somebody work on the package while functions run.
func TestApplyKeepsWhatOthersWrote(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		meanwhile func(path string) error
		after     []byte
		want      string
	}{
		"edited, then written": {"the edit would be lost", edit, []byte("new\n"), "a.yaml was changed meanwhile: nothing was written"},
		"edited, then deleted": {"the edit would be lost", edit, nil, "a.yaml was changed meanwhile: nothing was written"},
		"deleted":              {"it would come back", os.Remove, []byte("new\n"), "a.yaml was deleted meanwhile: nothing was written"},
		"untouched":            {"nothing is in the way", func(string) error { return nil }, []byte("new\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t)
			path := filepath.Join(dir, "a.yaml")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.meanwhile(path); err != nil {
				t.Fatal(err)
			}
			err = pkgtree.Apply(dir, []pkgtree.Change{
				{Path: "0.yaml", After: []byte("first\n")},
				{Path: "a.yaml", Before: before, After: tc.after},
			})
			_, first := os.Stat(filepath.Join(dir, "0.yaml"))
			if tc.want == "" {
				if err != nil || first != nil {
					t.Errorf("Apply = %v, and the first file: %v, want both done: %s", err, first, tc.reason)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Apply = %v, want %q: %s", err, tc.want, tc.reason)
			}
			if !os.IsNotExist(first) {
				t.Errorf("Apply wrote a file before it checked the others (%v)", first)
			}
		})
	}
}

func edit(path string) error { return os.WriteFile(path, []byte("edited: true\n"), 0o600) }
