// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

func TestLines(t *testing.T) {
	change := pkgtree.Change{Path: "a.yaml", Before: []byte("a: 1\n--- b\nc: 3\n"), After: []byte("a: 1\n++ b\nc: 3\n")}
	want := []diff.Line{
		{diff.Header, "diff a/a.yaml b/a.yaml"},
		{diff.Header, "--- a/a.yaml"},
		{diff.Header, "+++ b/a.yaml"},
		{diff.Hunk, "@@ -1,3 +1,3 @@"},
		{diff.Context, " a: 1"},
		{diff.Removed, "---- b"},
		{diff.Added, "+++ b"},
		{diff.Context, " c: 3"},
	}
	if d := cmp.Diff(want, diff.Lines(diff.Unified(change))); d != "" {
		t.Errorf("Lines (-want +got):\n%s", d)
	}
}

func TestUnifiedOfMissingSides(t *testing.T) {
	for name, tc := range map[string]struct {
		change pkgtree.Change
		want   string
	}{
		"created": {
			pkgtree.Change{Path: "a", After: []byte("x\n")},
			"diff /dev/null b/a\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,1 @@\n+x\n",
		},
		"deleted": {
			pkgtree.Change{Path: "a", Before: []byte("x")},
			"diff a/a /dev/null\n--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n",
		},
		"bytes that would do something": {
			pkgtree.Change{Path: "\x1b]52;c;eA==\a\n\"\\ü", After: []byte("x\n")},
			"diff /dev/null \"b/\\033]52;c;eA==\\007\\012\\\"\\\\\\303\\274\"\n" +
				"--- /dev/null\n+++ \"b/\\033]52;c;eA==\\007\\012\\\"\\\\\\303\\274\"\n@@ -0,0 +1,1 @@\n+x\n",
		},
		"other letters": {
			pkgtree.Change{Path: "ü", After: []byte("x\n")},
			"diff /dev/null b/ü\n--- /dev/null\n+++ b/ü\n@@ -0,0 +1,1 @@\n+x\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, diff.Unified(tc.change)); d != "" {
				t.Errorf("Unified (-want +got):\n%s", d)
			}
		})
	}
}
