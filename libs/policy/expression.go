// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// expression reports whether a field matches a regular expression.
type expression struct {
	field field
	expr  *regexp.Regexp
	// prefix is what each text begins with that matches, and literal what each has somewhere, besides. Both may be
	// empty.
	prefix, literal string
}

// newExpression returns nil for a text that is no regular expression.
func newExpression(f field, text string) node {
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	e := expression{field: f, expr: expr}
	if tree, err := syntax.Parse(text, syntax.Perl); err == nil {
		e.prefix, e.literal = fixed(tree.Simplify())
	}
	return e
}

// eval looks for the fixed texts first, which takes a tenth of the time.
func (e expression) eval(v *values) bool { return e.matches(v.text[e.field]) }

func (e expression) matches(value string) bool {
	return strings.HasPrefix(value, e.prefix) && strings.Contains(value, e.literal) && e.expr.MatchString(value)
}

func (e expression) under(k known) tri {
	value, ok := k[e.field]
	if !ok {
		return unknown
	}
	return triOf(e.matches(value))
}

// fixed returns what each text begins with that an expression matches, and a longer one that each has.
func fixed(tree *syntax.Regexp) (prefix, literal string) {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	for i, part := range parts {
		text := literalOf(part)
		if i == 1 && parts[0].Op == syntax.OpBeginText {
			prefix = text
		}
		if len(text) > len(literal) {
			literal = text
		}
	}
	if literal == prefix {
		literal = ""
	}
	return prefix, literal
}

// literalOf returns the text that an expression is, empty if it is another one.
func literalOf(e *syntax.Regexp) string {
	if e.Op != syntax.OpLiteral || e.Flags&syntax.FoldCase != 0 {
		return ""
	}
	text := string(e.Rune)
	if strings.ContainsRune(text, utf8.RuneError) {
		return "" // in an expression it matches bytes that are no character too
	}
	return text
}
