// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFiguresReplaceFigures(t *testing.T) {
	begin, end := linesOf("a")
	otherBegin, otherEnd := linesOf("b")
	document := "before\n" + begin + "old\n" + end + "between\n" + otherBegin + otherEnd + "after\n"
	for range 2 {
		var err error
		if document, err = withFigures(document, "a", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	want := "before\n" + begin + "\nnew\n\n" + end + "between\n" + otherBegin + otherEnd + "after\n"
	if document != want {
		t.Errorf("got %q, want %q", document, want)
	}
	if _, err := withFigures(document, "c", "new"); err == nil {
		t.Error("a document without a place for figures has got them")
	}
}

// TestFiguresGetIntoTheDocument has a measurement that prints no Markdown, and a file with figures.
func TestFiguresGetIntoTheDocument(t *testing.T) {
	dir := t.TempDir()
	b := bench{out: io.Discard, document: filepath.Join(dir, "document")}
	begin, end := linesOf("a")
	otherBegin, otherEnd := linesOf("b")
	if err := os.WriteFile(b.document, []byte(begin+end+otherBegin+otherEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	err := b.keepFigures(t.Context(), "a", func(context.Context) error {
		_, err := fmt.Fprintln(b.out, "items  p50")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.md"), []byte("| p50 |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.insertFigures(dir); err != nil {
		t.Fatal(err)
	}
	want := begin + "\n```text\nitems  p50\n```\n\n" + end + otherBegin + "\n| p50 |\n\n" + otherEnd
	if got, err := os.ReadFile(b.document); err != nil || string(got) != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// TestTablesGetIntoTheDocumentWithoutPadding has a table that a terminal aligns.
func TestTablesGetIntoTheDocumentWithoutPadding(t *testing.T) {
	padded := "Measured here.\n\n| load      |  p50   | over bare |\n| --------- | ------ | --------- |\n" +
		"| 8 callers | 3.5 ms |           |\n"
	want := "Measured here.\n\n| load | p50 | over bare |\n| --- | --- | --- |\n| 8 callers | 3.5 ms | |\n"
	if got := formatMarkdown(padded); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// ofTheCluster are the tables that benchmarks of test/e2e/pods write.
var ofTheCluster = []string{"machine-cluster", "warm", "throughput-pods", "burst", "cold"}

// TestFiguresBeyondTheirLimitAreWritten has a measurement that fails after it printed, with and without all figures.
func TestFiguresBeyondTheirLimitAreWritten(t *testing.T) {
	for failure, written := range map[error]bool{limitError("too slow"): true, io.ErrUnexpectedEOF: false} {
		b := bench{out: io.Discard, document: filepath.Join(t.TempDir(), "document")}
		begin, end := linesOf("a")
		if err := os.WriteFile(b.document, []byte(begin+"old\n"+end), 0o600); err != nil {
			t.Fatal(err)
		}
		err := b.keepFigures(t.Context(), "a", func(context.Context) error {
			_, _ = fmt.Fprintln(b.out, "| new |")
			return failure
		})
		content, _ := os.ReadFile(b.document)
		if !errors.Is(err, failure) || strings.Contains(string(content), "new") != written {
			t.Errorf("%v: got %v, and the document is %q", failure, err, content)
		}
	}
}

// TestDocumentTakesFigures checks the real document: each table has a place, and each place a table that make
// bench-docs or make bench-docs-cluster writes.
func TestDocumentTakesFigures(t *testing.T) {
	files, err := filepath.Glob("../../docs/benchmarks/*.txt") // in the order of their dates
	if err != nil || len(files) == 0 {
		t.Fatalf("no raw tables: %v", err)
	}
	document, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`-document \.\./\$\(BENCHMARKS\) \\\n\s+-tables (\S+)`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list of tables for the document")
	}
	ofMake := strings.Split(string(list[1]), ",")
	all := slices.Collect(maps.Keys(new(bench).measurements()))
	if !slices.Equal(slices.Sorted(slices.Values(ofMake)), slices.Sorted(slices.Values(all))) {
		t.Errorf("make bench-docs writes %v, and there are %v", ofMake, all)
	}
	tables := slices.Concat(ofTheCluster, all)
	for _, table := range tables {
		if _, err := withFigures(string(document), table, "figures"); err != nil {
			t.Error(err)
		}
	}
	for _, place := range regexp.MustCompile(`Written by make bench-docs: (\S+) -->`).FindAllSubmatch(document, -1) {
		if !slices.Contains(tables, string(place[1])) {
			t.Errorf("nothing writes the place of %s", place[1])
		}
	}
}
