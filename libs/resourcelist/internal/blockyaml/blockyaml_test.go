// SPDX-License-Identifier: Apache-2.0

package blockyaml_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"
)

// document is a document with the reason for its treatment.
type document struct {
	reason   string
	document string
}

// proven are documents that need no full decode.
var proven = []document{
	{"a scalar", "kind: ResourceList\n"},
	{"no line break at the end", "kind: ResourceList"},
	{"a mapping", "a:\n  b: c\n  d:\n    e: f\ng: h\n"},
	{"a sequence at its key's indentation", "items:\n- a: b\n  c: d\n- e: f\nresults: []\n"},
	{"an indented sequence", "items:\n  - a: b\n    c: d\n  - e: f\nresults: {}\n"},
	{"sequences in sequences", "a:\n- - b\n  - c\n- - - d\n    - e\n"},
	{"a value below its dash", "a:\n-\n  b: c\n-\n  d\n"},
	{"a value below its key", "a:\n  b\nc:\n  'd'\ne:\n  |\n  f\n"},
	{"values that are left out", "a:\nb:\n  c:\n  d:\ne:\n-\n- f:\n"},
	{"quoted scalars", "a: \"b: #c \\\"d\\\" \\u00e9 \\x41 \\U0001F600\"\nb: 'it''s: #d'\n"},
	{"quoted keys", "\"a\": b\nc:\n  'd''e': f\n  \"g\\th\": i\n"},
	{"a quoted scalar over lines of any indentation", "a: \"b\n\n c \\\nd\ne\"\nf: 'g\n  h'\n"},
	{"a plain scalar over lines", "a: b\n  c\n\n  - d\n   {e\nf: g\n"},
	{"plain scalars with indicators inside", "a: b:c#d - ? [e] {f}, *g &h !i 'j' \"k\" -\n-k: -l\n<<: x\n"},
	{"a literal scalar", "a: |\n  b: c\n   d\n\n  # e\n  \tf\ng: h\n"},
	{"a literal scalar in a sequence", "a:\n- |-\n  b\n- >+\n    c\n\n- d: |2\n      e\n"},
	{"a given indentation", "a: |1\n   b\n c\nd: >2-\n   e\n"},
	{"an empty literal scalar", "a: |\nb: >-\n\n  \nc: |"},
	{"comments", "# a\n\na: # b\n  # c\n  d: e # f\n# g\n  h: 'i' # j\nk: [] # l\nm: | # n\n  o\n  # p\n # q\n"},
	{"blanks before a comment", "a: b \t  # c\n"},
	{"CRLF", "a:\r\n- b: |\r\n    c\r\n\r\n  d: \"e\r\n    f\"\r\n"},
	{"the marker of the document's start", "---\na: b\n"},
	{"a byte order mark", "\ufeffa: b\n"},
	{"flow collections on one line", "a: {}\nb: []\nc: [ d, \"e, ]\", 'f', {g: h, i: [1.5]} ]\nj: { k: l }\n"},
	{"characters of other scripts", "schlüssel: wert 値 😀 # ü\n"},
	{"blank lines and blanks at ends of lines", "\n  \na:  \n\n- b  \n\n- c \n"},
	{"a tab inside a scalar", "a: b\tc\nd: \"e\tf\"\n"},
}

// declined are documents that only a full decode can judge, be they valid or not.
var declined = []document{
	{"empty", ""},
	{"only comments", "# a\n"},
	{"only a marker", "---\n"},
	{"no mapping", "- a\n"},
	{"a scalar", "a\n"},
	{"an indented top level", "  a: b\n"},
	{"a value after a value", "a: b\n'c'\n"},
	{"a mapping on its key's line", "a: b: c\n"},
	{"an entry less indented than its siblings", "a:\n    b: c\n  d: e\n"},
	{"an entry more indented than its siblings", "a:\n  b: c\n    d: e\n"},
	{"an item outside a sequence", "a: b\n- c\n"},
	{"an item less indented than its siblings", "a:\n  - b\n - c\n"},
	{"an item after a nested sequence ended", "a:\n  - b\n- c\n"},
	{"an entry in a sequence", "a:\n  - b\n  c: d\n"},
	{"a sequence on its key's line", "a: - b\n"},
	{"a colon in a plain scalar", "a: b\n  c: d\n"},
	{"a line after a comment in a plain scalar", "a: b # c\n  d\n"},
	{"a line after a comment line in a plain scalar", "a: b\n# c\n  d\n"},
	{"a quote that does not end", "a: \"b\n"},
	{"text after a quote", "a: \"b\" c\n"},
	{"a comment without a space", "a: \"b\"#c\n"},
	{"an unknown escape", "a: \"\\/\"\n"},
	{"an escaped surrogate", "a: \"\\ud83d\\ude00\"\n"},
	{"an escape of a character that does not exist", "a: \"\\U00110000\"\n"},
	{"an escape with too few digits", "a: \"\\x4\"\n"},
	{"a marker inside a quote", "a: \"b\n---\n\"\n"},
	{"a marker after an escaped line break", "a: \"b\\\n--- \"\n"},
	{"a key that is too long", strings.Repeat("k", 1025) + ": a\n"},
	{"a literal scalar after deeper blank lines", "a: |\n     \n  b\n"},
	{"a tab as indentation", "a:\n\tb: c\n"},
	{"a tab in a literal scalar's indentation", "a: |\n \tb\n"},
	{"a tab after a dash", "a:\n-\tb\n"},
	{"a tab after a colon", "a:\tb: c\n"},
	{"an indentation of zero", "a: |0\n  b\n"},
	{"an anchor", "a: &b c\n"},
	{"an alias", "a: *b\n"},
	{"a tag", "a: !!str b\n"},
	{"a directive", "%YAML 1.1\n---\na: b\n"},
	{"a complex key", "? a\n: b\n"},
	{"a reserved indicator", "a: @b\n"},
	{"a percent sign", "a: %b\n"},
	{"a flow collection over lines", "a: [b,\n  c]\n"},
	{"a flow collection that does not end", "a: [b\n"},
	{"JSON", `{"a": "b"}`},
	{"a key that is there twice", "a: b\na: c\n"},
	{"a second document", "a: b\n---\nc: d\n"},
	{"the marker of the document's end", "a: b\n...\n"},
	{"a carriage return alone", "a: b\rc: d\n"},
	{"a line separator", "a: b\u2028c: d\n"},
	{"a next-line character", "a: b\u0085c: d\n"},
	{"a byte order mark inside", "a: b\n\ufeffc: d\n"},
	{"a character that is none", "a: \ufffe\n"},
	{"a control character", "a: \x01\n"},
	{"a delete character", "a: \x7f\n"},
	{"no UTF-8", "a: \xff\n"},
	{"more nesting than any resource has", strings.Repeat("- ", 200)},
	{"more nesting than any resource has, in a value", "a:\n" + strings.Repeat("- ", 200) + "b\n"},
}

func TestOutline(t *testing.T) {
	for _, tc := range proven {
		t.Run(tc.reason, func(t *testing.T) {
			if _, ok := blockyaml.Outline([]byte(tc.document)); !ok {
				t.Errorf("Outline declines %q", tc.document)
			}
			checkPromise(t, []byte(tc.document))
		})
	}
}

func TestOutlineDeclines(t *testing.T) {
	for _, tc := range declined {
		t.Run(tc.reason, func(t *testing.T) {
			if entries, ok := blockyaml.Outline([]byte(tc.document)); ok {
				t.Errorf("Outline accepts %q as %+v", tc.document, entries)
			}
		})
	}
}
