// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

func TestHostileEntriesAreRefused(t *testing.T) {
	tests := map[string]struct {
		layers [][]entry
		want   string
	}{
		"parent in a name":         {[][]entry{{file("a/../../x", "")}}, `"a/../../x" leads out of the image`},
		"absolute with parent":     {[][]entry{{file("/../x", "")}}, `"/../x" leads out of the image`},
		"symbolic link out":        {[][]entry{{symlink("a/l", "../../x")}}, `"a/l" is a symbolic link to "../../x", out`},
		"hard link out":            {[][]entry{{hardlink("l", "../x")}}, `"l" is a hard link to "../x", out of the image`},
		"hard link by an absolute": {[][]entry{{hardlink("l", "/../etc/shadow")}}, `out of the image`},
		"hard link to the machine": {[][]entry{{hardlink("l", "/etc/shadow")}}, `which is no file of the image`},
		"hard link through a link": {
			[][]entry{{symlink("m", "/etc")}, {hardlink("l", "m/shadow")}}, "which is no file of the image",
		},
		"hard link to what it replaces": {
			[][]entry{{file("d/e/x", "")}, {hardlink("d", "d/e/x")}}, `"d" is a hard link to "d/e/x", which it would replace`,
		},
		"hard link to a directory": {[][]entry{{dir("d"), hardlink("l", "d")}}, "which is no file of the image"},
		"file through two links": {
			[][]entry{{symlink("d/e/a", "../.."), symlink("b", "d/e/a/..")}, {file("b/x", "")}},
			"leads out of the image by a symbolic link",
		},
		"long name":           {[][]entry{{file(strings.Repeat("d/", 2048)+"x", "")}}, "has a name of more than 4096 bytes"},
		"long part of a name": {[][]entry{{file(strings.Repeat("x", 256), "")}}, "has a name or a link that the file system"},
		"deep":                {[][]entry{{file(strings.Repeat("d/", 129)+"x", "")}}, "is below more than 128 directories"},
		"deep by a link": {
			[][]entry{{symlink("l", strings.Repeat("d/", 100)), file("l/"+strings.Repeat("e/", 100)+"x", "")}},
			"is below more than 128 directories",
		},
		"long path by a link": {
			[][]entry{{
				symlink("l", strings.Repeat(strings.Repeat("d", 250)+"/", 15)),
				file("l/"+strings.Repeat("e", 250)+"/"+strings.Repeat("e", 250)+"/x", ""),
			}}, "at a path of more than 4096 bytes",
		},
		"link with many steps": {
			[][]entry{{dir("d"), symlink("l", strings.Repeat("d/../", 600)), file("l/x", "")}}, "take too many steps",
		},
		"link without target": {[][]entry{{symlink("l", "")}}, "with no target"},
		"long target":         {[][]entry{{symlink("l", strings.Repeat("x", 4096))}}, "with one of 4096 bytes or more"},
		"long part of a target": {
			[][]entry{{symlink("l", strings.Repeat("x", 300)), file("l/x", "")}}, "has a name or a link that the file system",
		},
		"links in a circle":  {[][]entry{{symlink("a", "b"), symlink("b", "a"), file("a/x", "")}}, "too many symbolic links"},
		"root as a link":     {[][]entry{{symlink("./", "/etc")}}, "takes the place of the image's root"},
		"below a file":       {[][]entry{{file("a", ""), file("a/b", "")}}, "is a file, and has entries below it"},
		"whiteout of parent": {[][]entry{{file("a/.wh...", "")}}, "hides nothing that could be there"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var layers [][]byte
			for _, entries := range tc.layers {
				layers = append(layers, archive(t, entries...))
			}
			_, _, err := apply(t, limits, layers...)
			if err == nil || fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a rejection that says %q", err, tc.want)
			}
		})
	}
}

// TestLinksChainedByLayers writes through a chain of links, each harmless where it stands, whose last
// part leaves the image once they are combined.
func TestLinksChainedByLayers(t *testing.T) {
	_, _, err := apply(t, limits, archive(t, dir("a/b"), symlink("a/b/up", "../..")),
		archive(t, symlink("top", "a/b/up/.."), file("top/x", "")))
	const want = "leads out of the image by a symbolic link"
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want a rejection of the file that is written through links", err)
	}
}

// TestDeepNameEnds has a layer with one name of a megabyte, which is rejected at once, and leaves nothing deep.
func TestDeepNameEnds(t *testing.T) {
	wide := unpack.Limits{Bytes: 4 << 30, Files: 300_000}
	root, _, err := apply(t, wide, archive(t, file(strings.Repeat("a/", 1<<18)+"x", "")))
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "has a name of more than") {
		t.Errorf("error %v, want a rejection", err)
	}
	if got := listing(t, root); got != "" {
		t.Errorf("%s was written", got)
	}
}

// TestMillionFiles applies a layer with a million files, which is made as it is read: it is rejected at the
// limit, and its rest is not read.
func TestMillionFiles(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	reader, writer := io.Pipe()
	made := make(chan int)
	go func() { made <- writeFiles(writer, 1_000_000) }()
	tree := unpack.New(root, limits)
	err = tree.Layer(t.Context(), reader)
	_ = reader.Close()
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("got %v, want a rejection that names the limit", err)
	}
	if n := <-made; n > int(limits.Files)+10 {
		t.Errorf("%d files were read, want no more than the limit", n)
	}
	if entries, err := fs.ReadDir(root.FS(), "."); err != nil || len(entries) > int(limits.Files) {
		t.Errorf("%d files were written, %v, want at most %d", len(entries), err, limits.Files)
	}
}

// writeFiles writes a layer of so many empty files until its reader has gone, and returns how many it wrote.
func writeFiles(to io.WriteCloser, files int) (n int) {
	defer func() { _ = to.Close() }()
	w := tar.NewWriter(to)
	for ; n < files; n++ {
		name := fmt.Sprintf("file-%d", n)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}); err != nil {
			break
		}
	}
	return n
}
