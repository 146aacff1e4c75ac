// Package ui shows people what happens, in colour where that is wanted.
package ui

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// Printer writes for people. Errors of the underlying writer are dropped: there is
// nobody left to tell.
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

// diffLine returns a line of a diff as it may be shown. It keeps the end of a line that
// was written on Windows, without which patch would not find the line.
func diffLine(text string) string {
	if line, ok := strings.CutSuffix(text, "\r"); ok {
		return Printable(line) + "\r"
	}
	return Printable(text)
}

// results writes results, the worst first and otherwise in their order.
func (p *Printer) results(results []result.Result) {
	rank := func(r result.Result) int {
		return slices.Index([]result.Severity{result.Error, result.Warning, result.Info}, r.Severity)
	}
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b result.Result) int { return rank(a) - rank(b) })
	for _, r := range sorted {
		p.block(r.String(), p.style.severity(r.Severity))
	}
}

// sequence is what moves the cursor or changes colours.
var sequence = regexp.MustCompile(`(\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]`)

// block writes a text, if there is one, indented below a function. Functions like to log
// in colour: not even what is left of that without the control characters is shown.
func (p *Printer) block(text string, paint paint) {
	text = sequence.ReplaceAllString(text, "")
	for line := range strings.Lines(Printable(strings.TrimSpace(text))) {
		p.Line("      %s", paint(strings.TrimRight(line, "\n")))
	}
}

// Printable returns a text that others wrote without what would make a terminal do
// something else than show it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// OneLine is Printable for what is shown in a line of its own.
func OneLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", " ")
}

// duration returns a duration rounded to what people read.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
