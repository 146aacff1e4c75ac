// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"math"

	"github.com/mattn/go-runewidth"
)

// terminal computes the width of characters. It ignores the environment, unlike the package's
// own functions do.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// columnsOf returns the width of a text, in columns of a terminal.
func columnsOf(text string) int { return terminal.StringWidth(text) }

// minShown is the least number of columns for a text that is cut.
const minShown = 3

// maxColumns returns the columns of a line. The last column stays free: some terminals wrap at it.
func (p *Progress) maxColumns() int {
	if p.Width != nil {
		if width := p.Width(); width > 0 {
			return width - 1
		}
	}
	return math.MaxInt32
}

// cutEnd returns a text without its end, if it does not fit next to further texts.
func (p *Progress) cutEnd(text string, others int) string {
	return terminal.Truncate(text, max(p.maxColumns()-others, minShown), "…")
}

// cutBeginning returns a name without its beginning, if it does not fit next to other texts: images differ at
// their ends.
func (p *Progress) cutBeginning(name string, others int) string {
	columnsLeft := max(p.maxColumns()-others, minShown)
	if columnsOf(name) <= columnsLeft {
		return name
	}
	return terminal.TruncateLeft(name, columnsOf(name)-columnsLeft+1, "…")
}
