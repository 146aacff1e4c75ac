// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// TestApplyIsTheOppositeOfUnified applies the diffs of files to the files.
func TestApplyIsTheOppositeOfUnified(t *testing.T) {
	long := strings.Repeat("same\n", 30)
	before := map[string][]byte{
		"changed": []byte("a\n" + long + "b\n"), "deleted": []byte("x\n"), "kept": []byte("k\n"), "end": []byte("no newline"),
		"dashes": []byte("- x\n"), "b/deleted": []byte("x\n"),
	}
	after := map[string][]byte{
		"changed": []byte("A\nnew\n" + long + "B\n"), "created": []byte("1\n2\n"), "kept": []byte("k\n"),
		"end": []byte("newline\n"), "dashes": []byte("- y\n"),
	}
	var patch strings.Builder
	for _, change := range pkgtree.Diff(before, after) {
		patch.WriteString(diff.Unified(change))
	}
	got, err := diff.Apply(maps.Clone(before), patch.String())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(after, got); d != "" {
		t.Errorf("%s\nfiles (-want +got):\n%s", patch.String(), d)
	}
}

// TestApplyReadsGit applies a patch as git writes it.
func TestApplyReadsGit(t *testing.T) {
	const patch = `diff --git a/old.yaml b/new.yaml
similarity index 60%
rename from old.yaml
rename to new.yaml
index 1111111..2222222 100644
--- a/old.yaml
+++ b/new.yaml
@@ -1,2 +1,2 @@ kind: ConfigMap
 a
-b
+c
diff --git a/moved b/elsewhere/moved
similarity index 100%
rename from moved
rename to elsewhere/moved
diff --git a/made b/made
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/made
@@ -0,0 +1 @@
+m
`
	got, err := diff.Apply(map[string][]byte{"old.yaml": []byte("a\nb\n"), "moved": []byte("m")}, patch)
	want := map[string][]byte{"new.yaml": []byte("a\nc\n"), "elsewhere/moved": []byte("m"), "made": []byte("m\n")}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v, files (-want +got):\n%s", err, d)
	}
	_, err = diff.Apply(map[string][]byte{"old.yaml": []byte("a\nother\n")}, patch)
	if err == nil || err.Error() != "the patch does not fit old.yaml: line 2 differs" {
		t.Errorf("a file that differs: %v", err)
	}
}
