// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from the output of registries and credential helpers, before error messages quote it.
package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// patterns match text that looks secret: text after words such as "password", JSON web tokens, and the users and
// queries in URLs. They are necessary because servers may repeat the credentials of a request in their answers.
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

// Text returns text without the parts that look like secrets, such as passwords and tokens.
func Text(text string) string {
	for _, p := range patterns {
		text = p.secret.ReplaceAllString(text, p.replacement)
	}
	return text
}

// Line returns text on a single line. Each sequence of spaces and unprintable characters becomes a single space.
func Line(text string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"),
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return strings.Join(words, " ")
}
