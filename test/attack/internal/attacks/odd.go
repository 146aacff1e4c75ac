// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// oddLists evaluates unusual and malformed resource lists, one after another. The program must evaluate or reject each.
var oddLists = Attack{
	Name: "odd lists", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error {
		for name, list := range oddListsByKind() {
			if err := t.checkDecided(ctx, []byte(list)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	},
}

// list is a valid resource list without items. Most of the unusual resource lists begin with it.
const list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"

// oddListsByKind returns all unusual and malformed resource lists. The keys are descriptions of the lists.
func oddListsByKind() map[string]string {
	all := largeLists()
	maps.Copy(all, small)
	return all
}

// small contains short lists with odd characters, syntax or fields.
var small = map[string]string{
	"empty":                    "",
	"one line break":           "\n",
	"a comment":                "# x\n",
	"byte order mark":          "\ufeff" + list,
	"UTF-16":                   "\xff\xfek\x00",
	"CR LF":                    strings.ReplaceAll(list, "\n", "\r\n"),
	"CR":                       strings.ReplaceAll(list, "\n", "\r"),
	"tabs":                     list + "items:\n\t- a: b\n",
	"two documents":            list + "---\n" + list,
	"end of document":          list + "...\nfoo\n",
	"key twice":                list + list,
	"inner key twice":          list + "items:\n- a: 1\n  a: 2\n",
	"alias of items":           list + "x: &a []\nitems: *a\n",
	"alias of kind":            "x: &k ResourceList\nkind: *k\n",
	"merge":                    list + "x: &a {a: 1}\nitems:\n- <<: [*a, *a, *a]\n",
	"no UTF-8":                 list + "x: \xff\n",
	"NUL":                      list + "x: \x00\n",
	"JSON":                     `{"kind":"ResourceList","items":[]}`,
	"JSON and more":            `{"kind":"ResourceList"} x`,
	"tagged kind":              "kind: !!str ResourceList\n",
	"binary kind":              "kind: !!binary UmVzb3VyY2VMaXN0\n",
	"key with a question mark": "? kind\n: ResourceList\n",
	"items as a map":           list + "items: {}\n",
	"configuration as a list":  list + "functionConfig: []\n",
	"results as a text":        list + "results: x\n",
	"message as a list":        list + "results:\n- message: [x]\n",
	"list as a key":            list + "? [a, b]\n: c\n",
	"directive":                "%YAML 3.0\n---\n" + list,
}

// largeLists returns lists that are too long, too deep or have too many elements.
func largeLists() map[string]string {
	return map[string]string{
		"deep":                list + "items: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deeper, without end": list + "items: " + strings.Repeat("[", 2_000_000),
		"deep blocks":         list + "items:\n" + deepBlocks(2000),
		"long scalar":         list + "x: " + strings.Repeat("a", 5<<20) + "\n",
		"too long":            list + "x: " + strings.Repeat("a", 7<<20) + "\n",
		"many keys":           list + manyLines("k%d: v\n"),
		"many anchors":        list + "items:\n" + manyLines("- &a%d x\n"),
		"many results":        list + "results:\n" + manyLines("- message: m%d\n"),
		"many documents":      strings.Repeat("---\n", 100_000),
		"many comments":       list + strings.Repeat("#\n", 500_000),
		"many flow maps":      list + "items: [" + strings.Repeat("{},", 300_000) + "]\n",
		"aliases of aliases":  list + aliasBomb(),
	}
}

func manyLines(format string) string {
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

func deepBlocks(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(strings.Repeat(" ", i) + "- a:\n")
	}
	return text.String()
}

// aliasBomb returns a short list that grows to a billion items when its YAML aliases are expanded.
func aliasBomb() string {
	var text strings.Builder
	text.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'j'; c++ {
		before := "*" + string(c-1)
		fmt.Fprintf(&text, "%c: &%c [%s]\n", c, c, strings.Join(slices.Repeat([]string{before}, 10), ","))
	}
	return text.String()
}
