// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

func TestFiguresReplaceFigures(t *testing.T) {
	document := "before\n" + beginFigures + "old\n" + endFigures + "after\n"
	for range 2 {
		var err error
		if document, err = withFigures(document, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "before\n" + beginFigures + "\nnew\n\n" + endFigures + "after\n"; document != want {
		t.Errorf("got %q, want %q", document, want)
	}
	if _, err := withFigures("nothing to replace", "new"); err == nil {
		t.Error("a document without a place for figures has got them")
	}
}

// TestDocumentTakesFigures checks the real document.
func TestDocumentTakesFigures(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withFigures(string(document), "figures"); err != nil {
		t.Error(err)
	}
}
