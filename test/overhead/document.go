// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// linesOf returns the lines between which a document contains the figures of a table.
func linesOf(table string) (begin, end string) {
	return fmt.Sprintf("<!-- Written by make bench-docs, %s: begin -->\n", table),
		fmt.Sprintf("<!-- Written by make bench-docs, %s: end -->\n", table)
}

// updateDocument writes the figures of a table into the document, if there is one.
func (b *bench) updateDocument(table, figures string) error {
	if b.document == "" {
		return nil
	}
	content, err := os.ReadFile(b.document)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	updated, err := withFigures(string(content), table, figures)
	if err != nil {
		return fmt.Errorf("update %s: %w", b.document, err)
	}
	return os.WriteFile(b.document, []byte(updated), 0o644)
}

// withFigures returns a document in which new figures of a table replace its old figures.
func withFigures(document, table, figures string) (string, error) {
	begin, end := linesOf(table)
	before, rest, begun := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + figures + "\n" + end + after, nil
}

// limitError is that a figure exceeds its limit. All figures were printed.
type limitError string

func (e limitError) Error() string { return string(e) }

// keepFigures runs a measurement, and writes its output into the document, if any, even if figures exceed their limit.
func (b *bench) keepFigures(ctx context.Context, table string, measure func(context.Context) error) error {
	var printed bytes.Buffer
	out := b.out
	b.out = io.MultiWriter(out, &printed)
	err := measure(ctx)
	b.out = out
	if _, exceeded := errors.AsType[limitError](err); err != nil && !exceeded {
		return err
	}
	return errors.Join(err, b.updateDocument(table, formatMarkdown(printed.String())))
}

// formatMarkdown returns figures that are no table in Markdown as a block.
func formatMarkdown(figures string) string {
	if strings.HasPrefix(figures, "|") || strings.Contains(figures, "\n|") {
		return figures
	}
	return "```text\n" + strings.TrimRight(figures, "\n") + "\n```\n"
}

// insertFigures writes the figures that are in files of a directory into the document, each by the name of its file.
func (b *bench) insertFigures(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no figures are in %s", dir)
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		figures, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read figures: %w", err)
		}
		if err := b.updateDocument(strings.TrimSuffix(filepath.Base(file), ".md"), string(figures)); err != nil {
			return err
		}
	}
	return nil
}
