// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

// entry is an entry of a layer; its content is its own name unless it is given.
type entry struct {
	kind    byte
	name    string
	link    string
	mode    int64
	content string
	minor   int64
}

func file(name, content string) entry {
	return entry{kind: tar.TypeReg, name: name, mode: 0o644, content: content}
}
func dir(name string) entry { return entry{kind: tar.TypeDir, name: name, mode: 0o755} }
func symlink(name, target string) entry {
	return entry{kind: tar.TypeSymlink, name: name, link: target}
}

func hardlink(name, target string) entry {
	return entry{kind: tar.TypeLink, name: name, link: target}
}

// archive returns a layer.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		err := w.WriteHeader(&tar.Header{
			Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: e.mode, Size: int64(len(e.content)), Devminor: e.minor,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(e.content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// limits are more than the images of these tests need.
var limits = unpack.Limits{Bytes: 64 << 20, Files: 1000}

// apply applies layers to a new tree, which is in a directory beside which there is another one.
func apply(t testing.TB, limits unpack.Limits, layers ...[]byte) (root string, tree *unpack.Tree, err error) {
	t.Helper()
	outside := t.TempDir()
	root = filepath.Join(outside, "a", "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = opened.Close()
		_ = os.RemoveAll(root)
		expectOnly(t, outside, "a")
	})
	tree = unpack.New(opened, limits)
	for _, layer := range layers {
		if err := tree.Layer(t.Context(), bytes.NewReader(layer)); err != nil {
			return root, tree, err
		}
	}
	return root, tree, nil
}

// expectOnly checks that a directory and what is in it have no other files than what the tests made.
func expectOnly(t testing.TB, outside, below string) {
	t.Helper()
	_ = filepath.WalkDir(outside, func(path string, _ fs.DirEntry, _ error) error {
		if path != outside && path != filepath.Join(outside, below) {
			t.Errorf("%s was written, outside of the image", path)
		}
		return nil
	})
}

// listing returns what is in a tree, one line for each entry.
func listing(t testing.TB, root string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			fmt.Fprintf(&out, "%s/ %v\n", name, info.Mode().Perm())
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			fmt.Fprintf(&out, "%s -> %s\n", name, target)
		default:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s %v %q\n", name, info.Mode(), content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLayersBecomeOneTree(t *testing.T) {
	tests := map[string]struct {
		reason string
		layers [][]entry
		want   string
	}{
		"modes": {
			"every file can be read, and no program runs as another user",
			[][]entry{{
				{kind: tar.TypeReg, name: "su", mode: 0o4711, content: "x"},
				{kind: tar.TypeReg, name: "secret", mode: 0o600},
				{kind: tar.TypeDir, name: "tmp", mode: 0o1777},
			}},
			"secret -r--r--r-- \"\"\nsu -r-xr-xr-x \"x\"\ntmp/ -rwxr-xr-x\n",
		},
		"names of ko": {
			"a leading slash is the image's root",
			[][]entry{{file("/ko-app/fn", "x"), file("./etc/a", "y")}},
			"etc/ -rwxr-xr-x\netc/a -r--r--r-- \"y\"\nko-app/ -rwxr-xr-x\nko-app/fn -r--r--r-- \"x\"\n",
		},
		"whiteouts": {
			"a layer hides files and whole directories of lower ones",
			[][]entry{
				{file("a", "1"), file("d/old", "1"), file("e/old", "1")},
				{file(".wh.a", ""), file("d/new", "2"), file("d/.wh..wh..opq", ""), file(".wh.e", ""), file(".wh..wh.plnk", "")},
			},
			"d/ -rwxr-xr-x\nd/new -r--r--r-- \"2\"\n",
		},
		"whiteouts beside implied directories": {
			"what the layer itself has below a directory that it does not name stays",
			[][]entry{
				{file("d/old", "1"), file("d/sub/old", "1"), file("e/sub/old", "1")},
				{file("d/sub/new", "2"), file("d/.wh..wh..opq", ""), file("e/sub/new", "2"), file("e/.wh.sub", "")},
			},
			"d/ -rwxr-xr-x\nd/sub/ -rwxr-xr-x\nd/sub/new -r--r--r-- \"2\"\n" +
				"e/ -rwxr-xr-x\ne/sub/ -rwxr-xr-x\ne/sub/new -r--r--r-- \"2\"\n",
		},
		"replaced": {
			"the upper layer's entry counts, of whatever type",
			[][]entry{
				{file("a", "1"), file("b/c", "1"), symlink("l", "a"), dir("keep"), file("keep/x", "1")},
				{file("a/below", "2"), dir("a"), file("b", "2"), file("l", "2"), dir("keep")},
			},
			"",
		},
		"devices and pipes": {
			"they are left out, also in place of a file, and a device of overlayfs hides one",
			[][]entry{
				{file("a", "1"), file("b", "1"), file("c/d", "1"), {kind: tar.TypeChar, name: "dev/console", minor: 1}},
				{
					{kind: tar.TypeFifo, name: "a"},
					{kind: tar.TypeBlock, name: "dev/sda", minor: 1},
					{kind: tar.TypeChar, name: "b"},
					{kind: tar.TypeChar, name: "c"},
					{kind: tar.TypeChar, name: "nothing"},
				},
			},
			"dev/ -rwxr-xr-x\n",
		},
		"links of the root": {
			"an absolute link leads to a place in the image, also for what is written later",
			[][]entry{{dir("run"), symlink("var/run", "/run")}, {file("var/run/lock", "x")}},
			"run/ -rwxr-xr-x\nrun/lock -r--r--r-- \"x\"\nvar/ -rwxr-xr-x\nvar/run -> /run\n",
		},
		"hard links": {
			"they keep the content of their layer",
			[][]entry{{file("a", "1"), hardlink("b", "/a"), hardlink("a", "a")}, {file("a", "2")}},
			"a -r--r--r-- \"2\"\nb -r--r--r-- \"1\"\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var layers [][]byte
			for _, entries := range tc.layers {
				layers = append(layers, archive(t, entries...))
			}
			root, _, err := apply(t, limits, layers...)
			if name == "replaced" {
				if err == nil || !strings.Contains(err.Error(), "is a file, and has entries below it") {
					t.Errorf("error %v, want a rejection", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := listing(t, root); got != tc.want {
				t.Errorf("got\n%swant\n%s%s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestUpperEntryReplacesLower(t *testing.T) {
	root, _, err := apply(t, limits, archive(t, file("a", "1"), file("b/c", "1"), symlink("l", "a"), file("keep/x", "1")),
		archive(t, dir("a"), file("a/below", "2"), file("b", "2"), file("l", "2"), dir("keep")))
	if err != nil {
		t.Fatal(err)
	}
	want := "a/ -rwxr-xr-x\na/below -r--r--r-- \"2\"\nb -r--r--r-- \"2\"\nkeep/ -rwxr-xr-x\nkeep/x -r--r--r-- \"1\"\n" +
		"l -r--r--r-- \"2\"\n"
	if got := listing(t, root); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	tests := map[string]struct {
		limits unpack.Limits
		layer  []entry
		want   string
	}{
		"files":       {unpack.Limits{Bytes: 1 << 20, Files: 2}, []entry{dir("a"), dir("b"), dir("c")}, "more than 2 files"},
		"directories": {unpack.Limits{Bytes: 1 << 20, Files: 2}, []entry{file("a/b/c", "")}, "more than 2 files"},
		"whiteouts": {
			unpack.Limits{Bytes: 1 << 20, Files: 2},
			[]entry{dir("a"), file(".wh.b", ""), file(".wh.b", "")},
			"more than 2 files",
		},
		"bytes": {unpack.Limits{Bytes: 1 << 20, Files: 9}, []entry{file("a", big)}, `with "a" it takes more`},
		"again": {
			unpack.Limits{Bytes: 3 << 20, Files: 9}, []entry{file("a", big), file("a", big), file("a", big)}, "more than 3 MiB",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := apply(t, tc.limits, archive(t, tc.layer...))
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a rejection that says %q", err, tc.want)
			}
		})
	}
}

func TestSparseFileCountsWithItsSize(t *testing.T) {
	// Ten bytes of headers that claim a terabyte of zeros.
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: "big", Typeflag: tar.TypeReg, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	_, _, err := apply(t, limits, out.Bytes())
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "more than 64 MiB unpacked") {
		t.Errorf("error %v, want a rejection for its size", err)
	}
}

func TestLinesAreAdded(t *testing.T) {
	layer := archive(t, file("etc/hosts", "a"), symlink("etc/passwd", "other"), file("b", "1\n"))
	root, tree, err := apply(t, limits, layer)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etc/hosts", "etc/passwd", "b", "new/file"} {
		if err := tree.AddLines(name, func(content string) string {
			if content == "1\n" {
				return ""
			}
			return "b\n"
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := "b -r--r--r-- \"1\\n\"\netc/ -rwxr-xr-x\netc/hosts -r--r--r-- \"a\\nb\\n\"\netc/passwd -> other\n" +
		"new/ -rwxr-xr-x\nnew/file -r--r--r-- \"b\\n\"\n"
	if got := listing(t, root); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMountpoints(t *testing.T) {
	layer := archive(t, symlink("proc", "/etc"), file("etc/hosts", "old"), symlink("etc/resolv.conf", "../run/x"))
	root, tree, err := apply(t, limits, layer)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		tree.Mountpoints([]string{"proc", "dev"}, []string{"etc/resolv.conf", "etc/hosts"}), tree.Directory("/srv/app"))
	if err != nil {
		t.Fatal(err)
	}
	want := "dev/ -rwxr-xr-x\netc/ -rwxr-xr-x\netc/hosts -r--r--r-- \"old\"\n" +
		"etc/resolv.conf -r--r--r-- \"\"\nproc/ -rwxr-xr-x\nsrv/ -rwxr-xr-x\nsrv/app/ -rwxr-xr-x\n"
	if got := listing(t, root); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
