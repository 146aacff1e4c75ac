// SPDX-License-Identifier: Apache-2.0

// Package excerpt shortens the output of functions for places with a size limit, such as status messages.
package excerpt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Start returns the first limit bytes of s, or slightly fewer bytes to avoid splitting a UTF-8 character. It also
// reports whether these bytes are all of s.
func Start(s string, limit int) (start string, all bool) {
	if len(s) <= limit {
		return s, true
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], false
}

// Middle returns s if it is at most limit bytes long. Otherwise it returns the beginning and the end of s, with a
// note between them about the number of omitted bytes. The result has at most limit bytes, and does not split UTF-8
// characters.
func Middle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, _ := Start(s, limit/2)
	tail := len(s) - (limit - limit/2)
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s [… %d bytes left out …] %s", head, tail-len(head), s[tail:])
}

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

// IsHidden reports whether a character is invisible or changes the display order of characters. An attacker can use
// such characters to make a text look like another text. Hidden characters are bidirectional overrides and isolates,
// zero-width characters, line separators and tags. Control characters do not count as hidden. The two variation
// selectors of emoji do not count either, because they are harmless.
func IsHidden(r rune) bool {
	return r > unicode.MaxASCII && r != '\ufe0e' && r != '\ufe0f' &&
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector)
}
