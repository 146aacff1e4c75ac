// SPDX-License-Identifier: Apache-2.0

package blockyaml

import (
	"bytes"
	"unicode/utf8"
)

// Classes of bytes, as a bit set.
const (
	// control is a control character, which no supported document contains.
	control = 1 << iota
	// multi is a byte of a UTF-8 character that is longer than one byte.
	multi
	carriage
	// indicator is a byte that cannot begin a plain scalar, that is, a scalar without quotes.
	indicator
	// inText is a byte that may terminate a plain scalar: ":" or "#".
	inText
	// inFlow is a byte that we support in a plain scalar inside a flow collection, such as [a, b]. YAML allows many more
	// bytes.
	inFlow
)

var classes = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		case c == '\r':
			t[c] = carriage
		case c < ' ' && c != '\t' && c != '\n', c == 0x7f:
			t[c] = control
		case c >= utf8.RuneSelf:
			t[c] = multi
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			t[c] = inFlow
		}
	}
	for _, c := range []byte("_./") {
		t[c] |= inFlow
	}
	for _, c := range []byte("\t\n\r -?:,[]{}#&*!|>'\"%@`") {
		t[c] |= indicator
	}
	for _, c := range []byte(":#") {
		t[c] |= inText
	}
	return t
}()

// isPrintable reports whether data is UTF-8, contains only characters that YAML permits without an escape sequence,
// and uses only LF or CRLF as line breaks.
func isPrintable(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch classes[data[i]] & (control | multi | carriage) {
		case 0:
		case control:
			return false
		case carriage:
			if i+1 == len(data) || data[i+1] != '\n' {
				return false
			}
		case multi:
			r, size := utf8.DecodeRune(data[i:])
			if !printableRune(r, size) && (i > 0 || r != byteOrderMark) {
				return false
			}
			i += size - 1
		}
	}
	return true
}

// byteOrderMark is supported only as the first character of a document.
const byteOrderMark = '\uFEFF'

// printableRune reports whether a multi-byte character is valid UTF-8 and may occur in YAML without an escape
// sequence. It returns false for U+0085, U+2028 and U+2029, which YAML 1.1 reads as line breaks.
func printableRune(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size == 1:
		return false
	case r < 0xa0, r == '\u2028', r == '\u2029', r == byteOrderMark, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isMarker reports whether b begins with the text of a document marker, "---" or "...".
func isMarker(b []byte) bool {
	return bytes.HasPrefix(b, []byte("---")) || bytes.HasPrefix(b, []byte("..."))
}
