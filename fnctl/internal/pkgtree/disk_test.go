// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// TestReadErrors reads files that are not resources. The error names the line of the file and never its content.
func TestReadErrors(t *testing.T) {
	const text = "it is text, not a resource with apiVersion, kind and metadata"
	const hint = "; if the file is not a resource, name it in .krmignore"
	for name, tc := range map[string]struct{ data, want string }{
		"text":        {"hunter2\n", "x.yaml:1: " + text},
		"later text":  {"kind: A\n---\n# c\n\nhunter2\n", "x.yaml:5: " + text},
		"syntax":      {"kind: A\n---\nkind: B\na: b: hunter2\n", "x.yaml:4: mapping values are not allowed in this context"},
		"anchor":      {"kind: *hunter2\n", "x.yaml:1: an alias names no anchor before it"},
		"metadata":    {"kind: A\nmetadata: hunter2\n", "x.yaml:2: metadata must be a map"},
		"annotations": {"kind: A\nmetadata:\n  annotations: [hunter2]\n", "x.yaml:3: annotations must be a map"},
		"separator":   {"kind: A\n--- hunter2\nkind: B\n", "x.yaml:2: only a comment may follow --- on its line"},
		"windows":     {"kind: A\r\n---\r\nhunter2\r\n", "x.yaml:3: " + text},
		"template": {
			"kind: A\nmetadata:\n  {{- include \"hunter2\" . }}\n",
			"x.yaml:2: did not find expected node content (it looks like a template, of Helm for example)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("x.yaml", []byte(tc.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := pkgtree.ReadFlat(".")
			if err == nil || err.Error() != "read package: "+tc.want+hint {
				t.Errorf("ReadFlat = %v, want %q", err, tc.want)
			}
			_, _, err = pkgtree.ReadList(strings.NewReader(tc.data), "standard input")
			if want := "read standard input" + strings.TrimPrefix(tc.want, "x.yaml"); name != "metadata" &&
				name != "annotations" && (err == nil || err.Error() != want) {
				t.Errorf("ReadList = %v, want %q", err, want)
			}
		})
	}
}

func TestMayWrite(t *testing.T) {
	for file, want := range map[string]bool{
		"a.yaml": true, "a/b.yaml": true, ".github/workflows/ci.yaml": true, ".gitignore": true, ".gitmodules": true,
		"../a.yaml": false, "/a.yaml": false, "": false,
		".git/hooks/pre-commit": false, "a/.git/x.yaml": false, ".GIT/x.yaml": false, ".Git": false,
		`.git\hooks/x`: false, `a\.git\x`: false,
		".git./x": false, ".git /x": false, "GIT~1/x": false, ".g\u200cit/x": false, ".git::$INDEX_ALLOCATION/x": false,
	} {
		if got := pkgtree.MayWrite(file); got != want {
			t.Errorf("MayWrite(%q) = %t, want %t", file, got, want)
		}
	}
}

// TestReadSkipsGit reads trees where Git keeps files that look like resources and packages, and trees that have only
// some of the files by which Git recognizes its directories.
func TestReadSkipsGit(t *testing.T) {
	const resource = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n"
	for name, tc := range map[string]struct {
		files []string
		want  int // resources that are read, including the root's Kptfile
	}{
		"git":                  {[]string{".git/a.yaml", ".git/Kptfile"}, 1},
		"git in other letters": {[]string{".GIT/a.yaml", ".GIT/Kptfile"}, 1},
		"bare repository":      {[]string{"b/HEAD", "b/objects/a.yaml", "b/refs/a.yaml", "b/Kptfile"}, 1},
		"worktree":             {[]string{"w/HEAD", "w/commondir", "w/logs/a.yaml", "w/Kptfile"}, 1},
		"no refs":              {[]string{"b/HEAD", "b/objects/a.yaml", "b/Kptfile"}, 3},
		"HEAD is a directory":  {[]string{"b/HEAD/a.yaml", "b/objects/a.yaml", "b/refs/a.yaml", "b/Kptfile"}, 5},
		"refs is a file":       {[]string{"b/HEAD", "b/objects/a.yaml", "b/refs", "b/Kptfile"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range append(tc.files, "Kptfile") {
				file = filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(resource), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tree, err := pkgtree.ReadFlat(dir); err != nil || len(tree.Root.Resources) != tc.want {
				t.Errorf("ReadFlat = %v, %v, want %d resources", tree, err, tc.want)
			}
			if tree, err := pkgtree.Read(dir); err != nil || len(tree.Root.Subpackages) != min(1, tc.want-1) {
				t.Errorf("Read = %v, %v, want %d packages inside", tree, err, min(1, tc.want-1))
			}
		})
	}
}
