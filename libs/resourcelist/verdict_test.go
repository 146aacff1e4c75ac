// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// head begins a list; head+items is one.
const (
	head  = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"
	items = "items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: cm\n"
)

// valid are documents that are lists.
var valid = []struct{ reason, document string }{
	{"the usual list", head + items},
	{"any apiVersion will do", "apiVersion: example.com/v9\nkind: ResourceList\nitems: []\n"},
	{"old functions leave the apiVersion out", "kind: ResourceList\n"},
	{"a generator's input has no items", head + "functionConfig:\n  kind: ConfigMap\n"},
	{"null stands for missing", head + "functionConfig: null\nitems: ~\nresults:\n"},
	{"the order of keys does not matter", "results: []\n" + items + "functionConfig: {}\nkind: ResourceList\n"},
	{"other keys are left alone", head + "extra: [1, 2]\n" + items},
	{"JSON is YAML", `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"kind":"ConfigMap"}]}`},
	{"JSON over lines", "{\n  \"kind\": \"ResourceList\",\n  \"items\": []\n}\n"},
	{"quotes change nothing", "\"kind\": 'ResourceList'\n'items': []\n"},
	{"comments change nothing", "# a\n" + head + "# b\nitems: # c\n# d\n- a: b # e\n# f\n"},
	{"Windows line ends", strings.ReplaceAll(head+items, "\n", "\r\n")},
	{"a byte order mark", "\ufeff" + head + items},
	{"a marker at the start", "---\n" + head + items},
	{"a marker at the end", head + items + "...\n"},
	{"tags that say what is there anyway", "kind: !!str ResourceList\nitems: !!seq []\n"},
	{"aliases within items", head + "items:\n- a: &x\n    b: c\n  d: *x\n- *x\n"},
	{"merge keys within items", head + "items:\n- a: &x\n    b: c\n  d:\n    <<: *x\n"},
	{"many aliases of a small block", head + "items:\n- &x {a: b}\n" + strings.Repeat("- *x\n", 5000)},
	{"keys that are there twice in an item are for its owner to reject", head + "items:\n- a: b\n  a: c\n"},
	{"items may be anything", head + "items:\n- 1\n-\n- [a]\n"},
}

// invalid are documents that are not, with words from the error.
var invalid = []struct{ reason, document, want string }{
	{"nothing at all", "", "there is no document"},
	{"only blanks", "\n  \n", "there is no document"},
	{"only a comment", "# a\n", "there is no document"},
	{"only a marker", "---\n", "the document is null"},
	{"only null", "null\n", "the document is null"},
	{"a sentence, such as a log line", "failed to do it\n", "the document is a scalar"},
	{"a list of resources without the wrapping", "- kind: ConfigMap\n", "the document is a sequence"},
	{"a log line before the list", "starting: now\n" + head + "oops\n" + items, "line 4"},
	{"a document that is tagged as null", "!!null {kind: ResourceList}\n", "the document is null"},
	{"a kind that is tagged as null", "kind: !!null ResourceList\n", "kind is null"},
	{"items that are tagged as null", head + "items: !!null [a]\n", `"items" has the tag !!null`},
	{"results that are tagged as null", head + "results: !!null [{message: a}]\n", `"results" has the tag !!null`},
	{"old results that are tagged as null", head + "results:\n  items: !!null []\n", `"items" has the tag !!null`},
	{"no kind", items, "kind is missing"},
	{"another kind", "kind: ConfigMap\n", `line 1: kind is "ConfigMap", want ResourceList`},
	{"a kind that is no string", "kind: [ResourceList]\n", "kind is a sequence"},
	{"the kind of a nested resource does not count", "items:\n- kind: ResourceList\n", "kind is missing"},
	{"the kind is spelled as it is", "kind: resourcelist\n", `kind is "resourcelist"`},
	{"a functionConfig that is no mapping", head + "functionConfig: abc\n", "functionConfig is a scalar, want a mapping"},
	{"items that are no sequence", head + "items:\n  a: b\n", "items is a mapping, want a sequence"},
	{"items that are text", head + "items: |\n  - a\n", "items is a scalar, want a sequence"},
	{"results that are text", head + "results: fine\n", "results is a scalar, want a sequence"},
	{"old results without a sequence", head + "results:\n  items: fine\n", "results is a scalar, want a sequence"},
	{"a result that is no mapping", head + "results:\n- fine\n", "read the results"},
	{"a message that is no text", head + "results:\n- message: [a]\n", "read the results"},
	{
		"kyaml does not follow an alias to items",
		head + "extra: &x []\nitems: *x\n", "items is an alias (*x), want a sequence",
	},
	{"nor one to the kind", "extra: &x ResourceList\nkind: *x\n", "kind is an alias (*x), want ResourceList"},
	{
		"items twice: one of them would be lost",
		head + items + "items: []\n", `line 8: the top-level key "items" occurs twice`,
	},
	{"the kind twice", head + "kind: ConfigMap\n", `the top-level key "kind" occurs twice`},
	{"a top-level key that is no string", "[a]: b\n" + head, "a top-level key is a sequence"},
	{"a second list", head + items + "---\n" + head, "a second document begins at line 8"},
	{"an empty second document makes kyaml read the list as a resource, too", head + items + "---\n", "a second document"},
	{"a directive, which kyaml takes for a document", "%YAML 1.1\n---\n" + head + items, "line 2 begins with ---"},
	{
		"a comment before the marker: kyaml would read the list as a resource",
		"# found nothing\n---\n" + head + items, "line 2 begins with ---",
	},
	{"a blank line before the marker", "\n---\n" + head + items, "line 2 begins with ---"},
	{"text that kyaml takes for a marker", "{kind: ResourceList, a: [\n---a\n]}\n", "line 2 begins with ---"},
	{"a broken second document", head + items + "---\na: b: c\n", "read what follows the list as YAML"},
	{"a list cut off in a quote", head + "items:\n- a: \"b\n", "read as YAML"},
	{"a list cut off in JSON", `{"kind":"ResourceList","items":[{"a":`, "read as YAML"},
	{"wrong indentation", head + "items:\n- a: b\n c: d\n", "read as YAML"},
	{"a tab as indentation", head + "items:\n- a:\n\tb: c\n", "read as YAML"},
	{"a control character", head + "a: \x07\n", "control characters are not allowed"},
	{"Latin-1", head + "a: f\xfcr\n", "byte 59 is not UTF-8"},
	{"UTF-16", "\xff\xfek\x00:\x00", "byte 0 is not UTF-8"},
	{"an alias of nothing", head + "a: *x\n", "unknown anchor"},
	{
		"an alias inside its own anchor",
		head + "items:\n- &x\n  a: *x\n", "line 5: the alias *x stands inside its own anchor",
	},
	{
		"an alias inside its own anchor in the results",
		head + "results:\n- &x\n  tags: *x\n", "stands inside its own anchor",
	},
	{"sequences without end", head + "items: " + strings.Repeat("[", 1<<17), "exceeded max depth"},
	{"indentation without end", head + "items:\n" + strings.Repeat("- ", 1<<17), "exceeded max depth"},
	{
		"a small list that expands to gigabytes of nodes",
		head + bomb("[*%, *%, *%, *%, *%, *%, *%, *%, *%]", 12), "with its aliases expanded",
	},
	{
		"a list that expands to gigabytes of text",
		head + "a: &x " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*x, ", 4000) + "]\n",
		"with its aliases expanded",
	},
	{
		"a list that expands to a depth that no reader survives",
		head + bomb(strings.Repeat("[", 1000)+"*%"+strings.Repeat("]", 1000), 12), "10000 levels",
	},
}

// bomb returns a sequence of so many items in which each contains the one before it
// as often as level has a percent sign.
func bomb(level string, items int) string {
	var b strings.Builder
	b.WriteString("items:\n- &x0 a\n")
	for i := 1; i < items; i++ {
		name := func(i int) string { return "x" + string(rune('0'+i/10)) + string(rune('0'+i%10)) }
		previous := name(i - 1)
		if i == 1 {
			previous = "x0"
		}
		b.WriteString("- &" + name(i) + " " + strings.ReplaceAll(level, "%", previous) + "\n")
	}
	return b.String()
}

func TestParseAccepts(t *testing.T) {
	for _, tc := range valid {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := resourcelist.Parse(t.Context(), []byte(tc.document))
			if err != nil {
				t.Errorf("Parse(%q): %v", tc.document, err)
			}
			if diff := cmp.Diff([]resourcelist.Result(nil), got); diff != "" {
				t.Errorf("Parse(%q): results (-want +got):\n%s", tc.document, diff)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, tc := range invalid {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := resourcelist.Parse(t.Context(), []byte(tc.document))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse: error %v, want one with %q", err, tc.want)
			}
		})
	}
}
