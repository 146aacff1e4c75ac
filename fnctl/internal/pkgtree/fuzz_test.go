// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// FuzzFile reads a package with a file of arbitrary content. An unchanged file keeps its bytes; a
// changed file is read back as it was written.
func FuzzFile(f *testing.F) {
	f.Add([]byte(original))
	f.Add([]byte("# licence\n---\na: 1\n---\n# between\n---\n- b\n- c\n# the end"))
	f.Add([]byte("a: &x [1, 2]\nb: *x\r\nc: |\r\n  d\r\n"))
	f.Add([]byte(`{"kind": "Service", "metadata": {"name": "json", "annotations": {"a": "1"}}}`))
	f.Add([]byte("\ufeffkind: List\nitems:\n- a: b\n...\n--- # c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "a.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := pkgtree.ReadFlat(dir)
		if err != nil {
			return
		}
		if changes, err := tree.Changes(tree.Root.Resources); err != nil || len(changes) > 0 {
			t.Fatalf("nothing changed, and yet %q, %v", changes, err)
		}
		for _, r := range tree.Root.Resources {
			if err := r.PipeE(yaml.SetAnnotation("seen", "yes")); err != nil {
				return // not a resource, which is checked before functions run
			}
		}
		files, err := tree.Files(tree.Root.Resources)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, files["a.yaml"], 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := pkgtree.ReadFlat(dir)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%q", err, files["a.yaml"])
		}
		if changes, err := again.Changes(tree.Root.Resources); err != nil || len(changes) > 0 {
			t.Fatalf("what was written is read as something else: %q, %v", changes, err)
		}
	})
}
