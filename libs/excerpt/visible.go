// SPDX-License-Identifier: Apache-2.0

package excerpt

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns text with each hidden character (see [IsHidden]) replaced by an escape sequence such as \u202e.
func Visible(text string) string {
	if !strings.ContainsFunc(text, IsHidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !IsHidden(r):
			b.WriteRune(r)
		case r > '\uffff':
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// IsHidden reports whether a character is invisible, or changes the display order of characters, without being a
// control character: bidirectional overrides and isolates, zero-width characters, line separators and tags. An
// attacker can use such characters to make a text look like another text. The two variation selectors of emoji are
// harmless, and not hidden.
func IsHidden(r rune) bool {
	return r > unicode.MaxASCII && r != '\ufe0e' && r != '\ufe0f' &&
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector)
}
