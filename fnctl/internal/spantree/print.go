// SPDX-License-Identifier: Apache-2.0

package spantree

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/libs/phase"
)

const (
	nameColumns = 18 // including the branches of the tree
	barColumns  = 24
)

// printer writes spans as lines.
type printer struct {
	total time.Duration
	width int
	lines []string
}

// line writes a line, cut to the width of the terminal.
func (p *printer) line(text string) {
	if p.width > 0 {
		text = runewidth.Truncate(text, p.width-1, "…")
	}
	p.lines = append(p.lines, text)
}

// span writes the line of a span after the prefix indent, and the lines of its children after the prefix below.
func (p *printer) span(s *span, indent, below string) {
	line := fmt.Sprintf("%-*s %9s  %s", nameColumns, indent+s.name, phase.Took(s.took), p.bar(s))
	p.line(strings.TrimRight(line+"  "+s.waits, " "))
	for i, child := range s.children {
		if i == len(s.children)-1 {
			p.span(child, below+"└ ", below+"  ")
		} else {
			p.span(child, below+"├ ", below+"│ ")
		}
	}
}

// bar returns the bar of a span in the columns of the call. A short span gets one column.
func (p *printer) bar(s *span) string {
	column := func(d time.Duration) int {
		return min(int(float64(d)/float64(p.total)*barColumns+.5), barColumns)
	}
	from := min(column(s.offset), barColumns-1)
	to := max(column(s.offset+s.took), from+1)
	return strings.Repeat("·", from) + strings.Repeat("█", to-from) + strings.Repeat("·", barColumns-to)
}
