// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/build/images/archive"
)

var modified = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

// want is what the archives contain: mode, path, time and content.
var want = []string{"755 bin/program 2026-01-02T03:04:06Z built", "644 top/LICENSE 2026-01-02T03:04:06Z free"}

// files returns two files that were written at this moment, with rights that the archive does not have.
func files(t *testing.T) []archive.File {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"license": "free", "program": "built"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []archive.File{
		{Path: "top/LICENSE", Source: filepath.Join(dir, "license"), Mode: 0o644},
		{Path: "bin/program", Source: filepath.Join(dir, "program"), Mode: 0o755},
	}
}

func TestTar(t *testing.T) {
	written := write(t, archive.WriteTarGz)
	uncompressed, err := gzip.NewReader(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	reader := tar.NewReader(uncompressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s belongs to %d:%d %q", header.Name, header.Uid, header.Gid, header.Uname)
		}
		got = append(got, entry(t, header.Mode, header.Name, header.ModTime, reader))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestZip(t *testing.T) {
	written := write(t, archive.WriteZip)
	reader, err := zip.NewReader(bytes.NewReader(written), int64(len(written)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry(t, int64(file.Mode()), file.Name, file.Modified, content))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// write returns an archive, which another order and other times of the files must not change.
func write(t *testing.T, format func(io.Writer, []archive.File, time.Time) error) []byte {
	t.Helper()
	var first, second bytes.Buffer
	if err := format(&first, files(t), modified); err != nil {
		t.Fatal(err)
	}
	others := files(t)
	slices.Reverse(others)
	if err := os.Chtimes(others[0].Source, modified, modified); err != nil {
		t.Fatal(err)
	}
	if err := format(&second, others, modified); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("archives of equal files differ")
	}
	return first.Bytes()
}

func entry(t *testing.T, mode int64, name string, modified time.Time, content io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%o %s %s %s", mode, name, modified.UTC().Format(time.RFC3339), text)
}

func TestMissingFile(t *testing.T) {
	missing := archive.File{Path: "a", Source: filepath.Join(t.TempDir(), "none")}
	err := archive.WriteTarGz(io.Discard, []archive.File{missing}, modified)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v, want that the file is missing", err)
	}
}
