// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	err := b.keep(t.Context(), "a", func(context.Context) error {
		_, err := fmt.Fprintln(b.out, "items  p50")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.md"), []byte("| p50 |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.insert(dir); err != nil {
		t.Fatal(err)
	}
	want := begin + "\n```text\nitems  p50\n```\n\n" + end + otherBegin + "\n| p50 |\n\n" + otherEnd
	if got, err := os.ReadFile(b.document); err != nil || string(got) != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// ofTheCluster are the tables that benchmarks of test/e2e/pods write.
var ofTheCluster = []string{"machine-cluster", "warm", "throughput-pods", "burst", "cold"}

// TestDocumentTakesFigures checks the real document.
func TestDocumentTakesFigures(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := ofTheCluster
	for table := range new(bench).measurements() {
		tables = append(tables, table)
	}
	for _, table := range tables {
		if _, err := withFigures(string(document), table, "figures"); err != nil {
			t.Error(err)
		}
	}
}
