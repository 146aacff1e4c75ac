// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// TestStatusKeepsTheRestOfTheFile changes the status of files in odd formats: their other bytes stay.
func TestStatusKeepsTheRestOfTheFile(t *testing.T) {
	const head = "apiVersion:   v1\nkind: \"Kptfile\"\nmetadata: {name: a}"
	for name, tc := range map[string]struct{ before, after string }{
		"no status":       {"# top\n\n" + head + "\n\n", "# top\n\n" + head + "\n\nstatus:\n  phase: done\n"},
		"no last newline": {head, head + "\nstatus:\n  phase: done\n"},
		"other status":    {head + "\nstatus: {a: b}\n", head + "\nstatus: {phase: done}\n"},
		"status in between": {
			head + "\nstatus:\n  a: b\n# about x\nx:   1\n",
			head + "\nstatus:\n  phase: done\n# about x\nx:   1\n",
		},
		"last comment": {
			head + "\nx: 1\n# about x\n",
			head + "\nx: 1\n# about x\nstatus:\n  phase: done\n",
		},
		"last comment behind a blank line": {
			head + "\nx:   1\n\n# the end\n",
			head + "\nx:   1\nstatus:\n  phase: done\n\n# the end\n",
		},
		"last comments, blank lines": {
			head + "\nx:   1\n\n# the\n\n# end\n\n",
			head + "\nx:   1\nstatus:\n  phase: done\n\n# the\n\n# end\n\n",
		},
		"last comment, indented": {
			head + "\nx:\n- 1\n\n  # of the list",
			head + "\nx:\n- 1\nstatus:\n  phase: done\n\n  # of the list",
		},
		"text that looks like a comment": {
			head + "\nx: |\n  a\n\n  # b\n\n# the end\n",
			head + "\nx: |\n  a\n\n  # b\nstatus:\n  phase: done\n\n# the end\n",
		},
		"last comment behind a status": {
			head + "\nstatus: {a: b}\n\n# the end\n",
			head + "\nstatus: {phase: done}\n\n# the end\n",
		},
		"last comment at a status": {
			head + "\nstatus:\n  a: b\n# the end\n",
			head + "\nstatus:\n  phase: done\n# the end\n",
		},
		"windows": {
			"apiVersion:   v1\r\nkind: Kptfile\r\nmetadata: {name: a}\r\n",
			"apiVersion:   v1\r\nkind: Kptfile\r\nmetadata: {name: a}\r\nstatus:\r\n  phase: done\r\n",
		},
		"flow": {
			"{apiVersion: v1, kind: Kptfile, metadata: {name: a}}\n",
			"{apiVersion: v1, kind: Kptfile, metadata: {name: a}, status: {phase: done}}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(tc.before), 0o600); err != nil {
				t.Fatal(err)
			}
			tree, err := pkgtree.ReadFlat(dir)
			if err != nil {
				t.Fatal(err)
			}
			resource := tree.Root.Resources[0]
			if err := resource.PipeE(yaml.SetField("status", yaml.MustParse("phase: done"))); err != nil {
				t.Fatal(err)
			}
			files, err := tree.Files([]*yaml.RNode{resource})
			if err != nil || string(files["a.yaml"]) != tc.after {
				t.Errorf("%v\n%q\nwant\n%q", err, files["a.yaml"], tc.after)
			}
		})
	}
}

// TestNewResourcesHaveTheHighestIndex puts resources without an index into an existing file: as in kpt, in the order of
// the function's output among those with the highest index.
func TestNewResourcesHaveTheHighestIndex(t *testing.T) {
	dir := t.TempDir()
	const file = "# Licence\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: old\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := pkgtree.ReadFlat(dir)
	if err != nil {
		t.Fatal(err)
	}
	added := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n  annotations:\n" +
		"    internal.config.kubernetes.io/path: a.yaml\n")
	const resource = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
	const head, second = "# Licence\n---\n" + resource, "\n---\n" + resource
	for want, output := range map[string][]*yaml.RNode{
		head + "old" + second + "new\n": {tree.Root.Resources[0], added},
		head + "new" + second + "old\n": {added, tree.Root.Resources[0]},
	} {
		if files, err := tree.Files(output); err != nil || string(files["a.yaml"]) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, files["a.yaml"], want)
		}
	}
}
