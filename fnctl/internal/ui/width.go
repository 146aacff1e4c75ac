// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"math"

	"github.com/mattn/go-runewidth"
)

// terminal knows how many columns characters have. It does not ask the environment, as the package's
// own functions do.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// columns returns how many columns of a terminal a text takes.
func columns(text string) int { return terminal.StringWidth(text) }

// minShown is the least number of columns for a text that is cut.
const minShown = 3

// limit returns the columns of a line. The last column stays free: some terminals wrap at it.
func (p *Progress) limit() int {
	if p.Width != nil {
		if width := p.Width(); width > 0 {
			return width - 1
		}
	}
	return math.MaxInt32
}

// cut returns a text without its end, if it does not fit behind others.
func (p *Progress) cut(text string, others int) string {
	return terminal.Truncate(text, max(p.limit()-others, minShown), "…")
}

// shorten returns a name without its beginning, if it does not fit beside others: images differ at
// their ends.
func (p *Progress) shorten(name string, others int) string {
	columnsLeft := max(p.limit()-others, minShown)
	if columns(name) <= columnsLeft {
		return name
	}
	return terminal.TruncateLeft(name, columns(name)-columnsLeft+1, "…")
}
