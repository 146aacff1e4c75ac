// SPDX-License-Identifier: Apache-2.0

// Package diff shows changes of files as unified diffs.
package diff

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// missing stands for a nonexistent file in a patch: the old path of a created file, and the new path of a deleted file.
const missing = "/dev/null"

// Unified returns a change as a unified diff that `patch -p1` accepts.
func Unified(c pkgtree.Change) string {
	before, after := quotePath("a/"+c.Path), quotePath("b/"+c.Path)
	if c.Before == nil {
		before = missing
	}
	if c.After == nil {
		after = missing
	}
	return string(diff.Diff(before, c.Before, after, c.After))
}

// quotePath quotes a path with control characters, hidden characters or invalid UTF-8. Without quotes, such a path
// might break the line or control the terminal. The quotes are as in C, because the program patch understands them.
func quotePath(path string) string {
	if utf8.ValidString(path) && !strings.ContainsFunc(path, unicode.IsControl) &&
		!strings.ContainsFunc(path, excerpt.IsHidden) {
		return path
	}
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// Kind is the kind of a line of a unified diff.
type Kind int

// The kinds of lines.
const (
	Context Kind = iota
	Header
	Hunk
	Added
	Removed
)

// Line is a line of a unified diff, with its marker and without its newline.
type Line struct {
	Kind Kind
	Text string
}

// Lines splits the unified diff of a file into lines. Lines before the first hunk are header lines. A later line
// that begins with "---" is a removed line, not a header.
func Lines(unified string) []Line {
	lines := make([]Line, 0, strings.Count(unified, "\n"))
	header := true
	for text := range strings.Lines(unified) {
		kind := lineKind(text)
		header = header && kind != Hunk
		if header {
			kind = Header
		}
		lines = append(lines, Line{Kind: kind, Text: strings.TrimSuffix(text, "\n")})
	}
	return lines
}

func lineKind(text string) Kind {
	switch text[0] {
	case '@':
		return Hunk
	case '+':
		return Added
	case '-':
		return Removed
	}
	return Context
}
