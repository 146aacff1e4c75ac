// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"math"

	"github.com/mattn/go-runewidth"
)

// terminal computes the width of characters. Unlike the functions of package runewidth, it ignores the environment.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// columnsOf returns the width of a text, in columns of a terminal.
func columnsOf(text string) int { return terminal.StringWidth(text) }

// minShown is the minimum number of columns of a text that is cut.
const minShown = 3

// maxColumns returns the columns of a line. The last column stays free, because some terminals wrap the line there.
func (p *Progress) maxColumns() int {
	if p.Width != nil {
		if width := p.Width(); width > 0 {
			return width - 1
		}
	}
	return math.MaxInt32
}

// cutEnd cuts the end of a text that does not fit on a line next to other texts of the given width.
func (p *Progress) cutEnd(text string, others int) string {
	return terminal.Truncate(text, max(p.maxColumns()-others, minShown), "…")
}

// cutBeginning cuts the beginning of a name that does not fit on a line next to other texts of the given width. It
// keeps the end, because names of images differ there.
func (p *Progress) cutBeginning(name string, others int) string {
	columnsLeft := max(p.maxColumns()-others, minShown)
	if columnsOf(name) <= columnsLeft {
		return name
	}
	return terminal.TruncateLeft(name, columnsOf(name)-columnsLeft+1, "…")
}
