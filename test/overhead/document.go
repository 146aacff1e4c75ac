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
	"regexp"
	"strings"
)

// linesOf returns the comment lines before and after a generated table in a Markdown document.
func linesOf(table string) (begin, end string) {
	return fmt.Sprintf("<!-- Written by make bench-docs: %s -->\n", table), fmt.Sprintf("<!-- end of %s -->\n", table)
}

// updateDocument replaces the results in a table of the document. It does nothing if no document is configured.
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

// withFigures replaces the results in a table of the document by figures. It returns the new document.
func withFigures(document, table, figures string) (string, error) {
	begin, end := linesOf(table)
	before, rest, begun := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + figures + "\n" + end + after, nil
}

// limitError reports that a result exceeds its limit. Measurements first print all results, and then return this error.
type limitError string

func (e limitError) Error() string { return string(e) }

// keepFigures runs a measurement and writes its results into the document, even if a result exceeds a limit. After all
// other errors, it writes nothing.
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

// padding matches the spaces and dashes that align the columns of a Markdown table in a terminal.
var padding = regexp.MustCompile(`( ) +|(---)-+`)

// formatMarkdown removes the padding from Markdown tables. If the text contains no table, it puts the text into a code
// block.
func formatMarkdown(figures string) string {
	if strings.HasPrefix(figures, "|") || strings.Contains(figures, "\n|") {
		return padding.ReplaceAllString(figures, "$1$2")
	}
	return "```text\n" + strings.TrimRight(figures, "\n") + "\n```\n"
}

// insertFigures updates the tables in the document from files named TABLE.md in dir.
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
