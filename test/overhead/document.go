// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// The lines between which a document has the figures.
const (
	beginFigures = "<!-- Written by make bench-docs: begin -->\n"
	endFigures   = "<!-- Written by make bench-docs: end -->\n"
)

// updateDocument writes figures into the document, if there is one.
func (b *bench) updateDocument(figures string) error {
	if b.document == "" {
		return nil
	}
	content, err := os.ReadFile(b.document)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	updated, err := withFigures(string(content), figures+"\n![Latency against load](images/latency.svg)\n")
	if err != nil {
		return fmt.Errorf("update %s: %w", b.document, err)
	}
	return os.WriteFile(b.document, []byte(updated), 0o644)
}

// withFigures returns a document with new figures in place of its old ones.
func withFigures(document, figures string) (string, error) {
	before, rest, begun := strings.Cut(document, beginFigures)
	_, after, ended := strings.Cut(rest, endFigures)
	if !begun || !ended {
		return "", fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(beginFigures), strings.TrimSpace(endFigures))
	}
	return before + beginFigures + "\n" + figures + "\n" + endFigures + after, nil
}
