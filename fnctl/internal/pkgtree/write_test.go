// SPDX-License-Identifier: Apache-2.0

package pkgtree_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// content returns the paths below a directory with the content of files and the targets of links.
// Directories have an empty content.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if entry.IsDir() {
			files[name+"/"] = ""
			return nil
		}
		if entry.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			files[name] = "link to " + target
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// exampleDir returns a directory with two files.
func exampleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"a.yaml": 0o640, "b.yaml": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func change(path, before, after string) pkgtree.Change {
	c := pkgtree.Change{Path: path}
	if before != "" {
		c.Before = []byte(before)
	}
	if after != "" {
		c.After = []byte(after)
	}
	return c
}

func TestApply(t *testing.T) {
	dir := exampleDir(t)
	err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
		change("a.yaml", "a.yaml", "new a"), change("b.yaml", "b.yaml", ""), change("c/d/e.yaml", "", "e"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.yaml": "new a", "c/": "", "c/d/": "", "c/d/e.yaml": "e"}
	if diff := cmp.Diff(want, content(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(dir, "a.yaml"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode of a.yaml = %v (%v), want it as it was", info.Mode(), err)
	}
}

// TestApplyReplacesFiles reads a file while it is written: an open reader keeps the old content.
func TestApplyReplacesFiles(t *testing.T) {
	dir := exampleDir(t)
	open, err := os.Open(filepath.Join(dir, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{change("a.yaml", "a.yaml", "new")}); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 100)
	if n, err := open.Read(data); string(data[:n]) != "a.yaml" {
		t.Errorf("a reader found %q (%v), want the old file", data[:n], err)
	}
}

func TestApplyAllOrNothing(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // a row of a table
		last   pkgtree.Change
	}{
		"a directory that cannot be made": {
			"prepared before the first file changes", t.Context(),
			change("b.yaml/c.yaml", "", "c"),
		},
		"a name that is too long": {
			"prepared before the first file changes", t.Context(),
			change("d/"+strings.Repeat("c", 300), "", "c"),
		},
		"interrupted": {"after Ctrl-C nothing must be written", interrupted, change("d/c.yaml", "", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := exampleDir(t)
			before := content(t, dir)
			err := pkgtree.Apply(tc.ctx, dir, []pkgtree.Change{
				change("0.yaml", "", "0"), change("a.yaml", "a.yaml", "new"), change("new/x.yaml", "", "x"), tc.last,
			})
			if err == nil || !strings.Contains(err.Error(), "nothing was written") || (!errors.Is(err, tc.ctx.Err()) &&
				tc.ctx.Err() != nil) {
				t.Errorf("Apply = %v, want an error that says that nothing was written", err)
			}
			if diff := cmp.Diff(before, content(t, dir)); diff != "" {
				t.Errorf("%s; files (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestApplyEndsHalfWay creates a file and a directory of the same name, which only fails on
// renaming.
func TestApplyEndsHalfWay(t *testing.T) {
	dir := exampleDir(t)
	err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
		change("a.yaml", "a.yaml", "new"), change("b.yaml", "b.yaml", ""), change("c", "", "c"), change("c/d.yaml", "", "d"),
	})
	if want := "half written; done: a.yaml; not done: c, c/d.yaml, b.yaml"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("Apply = %v, want %q", err, want)
	}
	want := map[string]string{"a.yaml": "new", "b.yaml": "b.yaml"}
	if diff := cmp.Diff(want, content(t, dir)); diff != "" {
		t.Errorf("files (-want +got), nothing must be deleted or left over:\n%s", diff)
	}
}

// TestApplyKeepsLinks writes through symbolic links, including one beside a link to a directory.
func TestApplyKeepsLinks(t *testing.T) {
	dir := exampleDir(t)
	sub := filepath.Join(dir, "real", "deep")
	if err := errors.Join(
		os.MkdirAll(sub, 0o755),
		os.WriteFile(filepath.Join(dir, "real", "f.yaml"), []byte("f"), 0o600),
		os.Symlink("real/deep", filepath.Join(dir, "dirlink")),
		os.Symlink("../f.yaml", filepath.Join(sub, "up.yaml")),
		os.Symlink("dirlink/up.yaml", filepath.Join(dir, "link.yaml")),
	); err != nil {
		t.Fatal(err)
	}
	if err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{change("link.yaml", "f", "new")}); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "link.yaml")); err != nil || to != "dirlink/up.yaml" {
		t.Errorf("link.yaml leads to %q (%v), want it left alone", to, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "real", "f.yaml")); string(got) != "new" {
		t.Errorf("the file behind the links has %q (%v), want what was written", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "f.yaml")); err == nil {
		t.Error("a file appeared where the links do not lead")
	}
}

// TestApplyStaysOutOfGit changes files through links to Git's directory, from which Git runs programs.
func TestApplyStaysOutOfGit(t *testing.T) {
	for name, tc := range map[string]struct {
		last pkgtree.Change
		want string // path to which the link leads
	}{
		"new file":                  {change("d/commondir", "", "x"), ".git/commondir"},
		"new file in new directory": {change("d/x/k.yaml", "", "x"), ".git/x/k.yaml"},
		"link to a link":            {change("e/commondir", "", "x"), ".git/commondir"},
		"link below Git":            {change("real/hooks/pre-commit", "", "x"), ".git/hooks/pre-commit"},
		"change":                    {change("d/config", "config", "x"), ".git/config"},
		"change of a linked file":   {change("f.yaml", "config", "x"), ".git/config"},
		"deletion":                  {change("d/config", "config", ""), ".git/config"},
		"deletion of a linked file": {change("f.yaml", "config", ""), ".git/config"},
		"dangling link":             {change("none/x.yaml", "", "x"), "none"},
		"absolute link":             {change("absolute/x.yaml", "", "x"), ".git/x.yaml"},
		"link out of the package":   {change("out/x.yaml", "", "x"), "../x.yaml"},
		"bare repository":           {change(".bare/hooks/x/y.yaml", "", "x"), ".bare/hooks/x/y.yaml"},
		"link to a bare repository": {change("b/commondir", "", "x"), ".bare/commondir"},
		"change of its file":        {change("head.yaml", "head", "x"), ".bare/HEAD"},
		"directory of a worktree":   {change("w/config.worktree", "", "x"), "w/config.worktree"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := gitDir(t)
			before := content(t, dir)
			err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
				change("a.yaml", "a.yaml", "new"), change("new/x.yaml", "", "x"), tc.last,
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("Apply = %v, want an error that names %s and says that nothing was written", err, tc.want)
			}
			if diff := cmp.Diff(before, content(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if checked := pkgtree.Check(dir, []pkgtree.Change{tc.last}); checked == nil || checked.Error() != err.Error() {
				t.Errorf("Check = %v, want the error of Apply: %v", checked, err)
			}
		})
	}
}

// TestApplyFollowsLinksToDirectories writes and deletes files through a link to a directory of the package.
func TestApplyFollowsLinksToDirectories(t *testing.T) {
	dir := gitDir(t)
	want := content(t, dir)
	err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
		change("d2/new.yaml", "", "1"), change("d2/x/y.yaml", "", "2"), change("d2/changed.yaml", "changed", "3"),
		change("d2/deleted.yaml", "deleted", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	want["real/new.yaml"] = "1"
	want["real/x/"] = ""
	want["real/x/y.yaml"] = "2"
	want["real/changed.yaml"] = "3"
	delete(want, "real/deleted.yaml")
	if diff := cmp.Diff(want, content(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// gitDir returns a work tree of Git with links to directories.
func gitDir(t *testing.T) string {
	t.Helper()
	dir := exampleDir(t)
	var errs []error
	for _, name := range []string{".git/hooks", "real", ".bare/objects", ".bare/refs", "w", "real/objects"} {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, name), 0o750))
	}
	for name, text := range map[string]string{
		".git/config": "config", "real/changed.yaml": "changed", "real/deleted.yaml": "deleted",
		".bare/HEAD": "head", "w/HEAD": "head", "w/commondir": "../.bare", "real/HEAD": "no repository without refs",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, target := range map[string]string{
		"d": ".git", "e": "d", "d2": "real", "real/hooks": "../e/hooks", "f.yaml": "d/config", "none": ".git/none",
		"absolute": filepath.Join(dir, ".git"), "out": "..", "b": ".bare", "head.yaml": "b/HEAD",
	} {
		errs = append(errs, os.Symlink(target, filepath.Join(dir, name)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestApplyChecksEverythingFirst(t *testing.T) {
	dir := writeTree(t)
	err := pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
		{Path: "new/file.yaml", After: []byte("new")},
		{Path: ".git/x/Kptfile", After: []byte("overwritten")},
	})
	if err == nil {
		t.Error("Apply overwrote a file that was not read")
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Error("Apply wrote a file before it checked the others")
	}
}

// TestApplyKeepsWhatOthersWrote changes the package while functions run.
func TestApplyKeepsWhatOthersWrote(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		meanwhile func(path string) error
		after     []byte
		want      string
	}{
		"edited, then written": {
			"the edit would be lost", edit, []byte("new\n"),
			"a.yaml was changed meanwhile: nothing was written",
		},
		"edited, then deleted": {"the edit would be lost", edit, nil, "a.yaml was changed meanwhile: nothing was written"},
		"deleted": {
			"it would come back", os.Remove, []byte("new\n"),
			"a.yaml was deleted meanwhile: nothing was written",
		},
		"untouched": {"nothing is in the way", func(string) error { return nil }, []byte("new\n"), ""},
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
			err = pkgtree.Apply(t.Context(), dir, []pkgtree.Change{
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
