// SPDX-License-Identifier: Apache-2.0

// Package ui shows progress and results to users, optionally in colour.
package ui

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// Printer writes messages for the user. It ignores write errors, because there is no other place to report them.
type Printer struct {
	out   io.Writer
	style style
}

// NewPrinter returns a printer that writes to out.
func NewPrinter(out io.Writer, colour bool) *Printer {
	return &Printer{out: out, style: style{colour: colour}}
}

// Line writes a line.
func (p *Printer) Line(format string, args ...any) {
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Count returns a number with a noun, such as "1 file" or "2 files".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Title writes an untrusted text as a bold line.
func (p *Printer) Title(text string) { p.Line("%s", p.style.bold(OneLine(text))) }

// Outcome writes the outcome of a test in green or red, with its name and a note such as the duration.
func (p *Printer) Outcome(outcome string, isGood bool, name, note string) {
	paint := p.style.red
	if isGood {
		paint = p.style.green
	}
	p.Line("%s  %s  %s", paint(fmt.Sprintf("%-7s", outcome)), name, p.style.faint(note))
}

// Replace replaces the current line of a terminal. The text must fit on the line.
func (p *Printer) Replace(text string) { fmt.Fprintf(p.out, "\r\x1b[K%s", text) }

// Diff writes changes as unified diffs.
func (p *Printer) Diff(changes []pkgtree.Change) {
	paints := map[diff.Kind]paint{
		diff.Header: p.style.bold, diff.Hunk: p.style.cyan, diff.Added: p.style.green, diff.Removed: p.style.red,
		diff.Context: plain,
	}
	for _, c := range changes {
		for _, line := range diff.Lines(diff.Unified(c)) {
			p.Line("%s", paints[line.Kind](diffLine(line.Text)))
		}
	}
}

// diffLine returns a line of a diff without characters that control a terminal. It keeps a Windows line ending,
// because the program patch would otherwise not find the line in the file.
func diffLine(text string) string {
	if line, ok := strings.CutSuffix(text, "\r"); ok {
		return Printable(line) + "\r"
	}
	return Printable(text)
}

// writeResults writes results by severity, errors first. Results of the same severity keep their order.
func (p *Printer) writeResults(results []result.Record) {
	rank := func(r result.Record) int {
		return slices.Index([]result.Severity{result.Error, result.Warning, result.Info}, r.Level())
	}
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b result.Record) int { return rank(a) - rank(b) })
	for _, r := range sorted {
		p.writeBlock(r.String(), p.style.paintOf(r.Level()))
	}
}

// sequence matches a terminal's escape sequences, which move the cursor or change colours.
var sequence = regexp.MustCompile(`(\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]`)

// Plain makes a text with colours, such as a function's log, safe to print. It removes escape sequences as a whole.
// Printable would remove only the control characters of a sequence, and leave the rest as text.
func Plain(text string) string { return Printable(sequence.ReplaceAllString(text, "")) }

// writeBlock writes a non-empty text as indented lines below a function's line.
func (p *Printer) writeBlock(text string, paint paint) {
	for line := range strings.Lines(Plain(strings.TrimSpace(text))) {
		p.Line("      %s", paint(strings.TrimRight(line, "\n")))
	}
}

// Printable returns an untrusted text without the control characters of terminals. It escapes hidden characters,
// such as characters that change the direction of a text.
func Printable(text string) string {
	return excerpt.Visible(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text))
}

// OneLine is Printable for a text that must be a single line. It replaces newlines by spaces.
func OneLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", " ")
}

// paint is a function that adds a style, such as a colour, to a text.
type paint func(text string) string

// plain leaves a text unchanged.
func plain(text string) string { return text }

// style makes texts bold, faint or coloured if colour is true, with escape sequences that all terminals support.
type style struct{ colour bool }

func (s style) escape(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.escape("1", text) }
func (s style) faint(text string) string  { return s.escape("2", text) }
func (s style) red(text string) string    { return s.escape("31", text) }
func (s style) green(text string) string  { return s.escape("32", text) }
func (s style) yellow(text string) string { return s.escape("33", text) }
func (s style) cyan(text string) string   { return s.escape("36", text) }

func (s style) paintOf(severity result.Severity) paint {
	switch severity {
	case result.Error:
		return s.red
	case result.Warning:
		return s.yellow
	case result.Info:
	}
	return plain
}
