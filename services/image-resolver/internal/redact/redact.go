// SPDX-License-Identifier: Apache-2.0

// Package redact prepares the output of registries and credential helpers for error messages.
package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// patterns match text that looks secret. Servers may repeat headers with credentials, with changes or in part. All
// JSON web tokens begin in the same way. The user parts of URLs contain passwords, and the queries of URLs, including
// relative URLs, contain signatures.
var patterns = []struct {
	secret      *regexp.Regexp
	replacement string
}{
	{
		regexp.MustCompile(`(?i)((?:password|passwd|secret|token|authorization|api[-_]?key)["']?\s*[:=]\s*)` +
			`("[^"]*"|'[^']*'|(?:basic |bearer )?[^\s,;}"']+)`),
		"$1[hidden]",
	},
	{regexp.MustCompile(`(?i)(authorization["']?\s*[:=]?\s*\[?["']?(?:basic|bearer)?)\s+[^\s"',\]]+`), "$1 [hidden]"},
	{regexp.MustCompile(`(?i)\b(basic|bearer)\s+[\w+/=.~-]{16,}`), "$1 [hidden]"},
	{regexp.MustCompile(`\beyJ[\w-]{8,}[\w.-]*`), "[hidden]"},
	{regexp.MustCompile(`://[^/\s@"]+@`), "://[hidden]@"},
	{regexp.MustCompile(`\?[^\s"'<>?]*=[^\s"'<>]*`), ""},
	{regexp.MustCompile(`(?s)(no token in bearer response):.*`), "$1"},
}

// Text returns text without secrets, as far as they look like secrets.
func Text(text string) string {
	for _, p := range patterns {
		text = p.secret.ReplaceAllString(text, p.replacement)
	}
	return text
}

// Line returns the printable words of text on a single line.
func Line(text string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"),
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return strings.Join(words, " ")
}
