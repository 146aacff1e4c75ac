// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// FuzzParse compares Parse with a full decode and with kyaml on arbitrary bytes.
func FuzzParse(f *testing.F) {
	for _, document := range seeds(f) {
		f.Add(document)
	}
	f.Fuzz(checkParse)
}

// FuzzParseFields does the same on lists that are put together from lines of
// envelopes and results, one piece for each byte.
func FuzzParseFields(f *testing.F) {
	f.Add([]byte{0, 1, 8, 16, 17, 18, 20, 22})
	f.Add([]byte{2, 9, 8, 16, 19, 21, 1, 0})
	f.Fuzz(func(t *testing.T, picks []byte) {
		var document []byte
		for _, p := range picks {
			document = append(document, pieces[int(p)%len(pieces)]...)
		}
		checkParse(t, document)
	})
}

// pieces are what FuzzParseFields puts lists together from.
var pieces = []string{
	"kind: ResourceList\n", "items:\n- a: b\n", "items: []\n", "items: null\n", "items:\n", "items: &x []\n",
	"items: {}\n", "items: a\n", "results:\n", "results: []\n", "results:\n  items:\n",
	"results: {items: []}\n", "results: |\n", "results: &r\n", "results: *r\n", "results: ~\n",
	"- message: a\n", "- message: |\n    a\n\n", "  severity: error\n",
	"  field:\n    path: a.b\n    currentValue: 1\n",
	"    proposedValue:\n      a: [b, 2020-01-02, .nan, !!binary aGk=]\n      1: 2\n", "  tags:\n    a: 1\n",
	"  file: {path: a, index: 1}\n", "  file:\n    index: b\n",
	"  resourceRef:\n    apiVersion: v1\n    kind: a\n    name: c\n", "- *x\n", "- &x {message: a}\n",
	"  <<: *x\n", "  message: b\n", "- null\n", "  - message: c\n", "    severity: info\n",
	"- message: >+\n    a\n   \n\n", "- message: 'a\n  b'\n", "    <<: [*x, {a: b}]\n",
	"  tags: {a: b, a: c}\n", "- !!null {message: a}\n", "- message: !!binary /w==\n",
	"  extra: {a: b, a: c}\n", "%TAG !a! x\n", "--- {kind: ResourceList}", "    ? [a]\n    : b\n",
	"    *x : b\n", "    ~: b\n", "    1: b\n", "functionConfig: {}\n", "functionConfig:\n  a: b\n",
	"functionConfig:\n", "functionConfig: []\n", "apiVersion: v1\n", "kind: List\n", "# a\n", "  # a\n",
	"\n", "---\n", "...\n", "\r\n", " ", "? ", "\ufeff", "\"kind\": \"ResourceList\"\n",
	"{\"kind\":\"ResourceList\",\"items\":[]}", "results: !!null a\n", "kind: !!null ResourceList\n",
	"  resourceRef: {name: c, metadata: {name: d}}\n", "    suggestedValue: [a]\n",
}

// seeds are the documents of all tests, and the golden lists.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("testdata/golden/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("golden lists: %d, %v", len(paths), err)
	}
	documents := [][]byte{realisticList(3)}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		documents = append(documents, data)
	}
	for _, tc := range valid {
		documents = append(documents, []byte(tc.document))
	}
	for _, list := range costly {
		documents = append(documents, []byte(list(3)))
	}
	for _, tc := range withResults {
		documents = append(documents, []byte(tc.document))
	}
	for _, tc := range invalid {
		documents = append(documents, []byte(tc.document))
	}
	return slices.DeleteFunc(documents, func(document []byte) bool { return len(document) > 64<<10 })
}

// checkParse compares the verdicts of Parse, a full decode and kyaml on a document.
func checkParse(t *testing.T, document []byte) {
	t.Helper()
	want, wantErr := resourcelist.Decode(document)
	got, err := resourcelist.Parse(t.Context(), document)
	if text(err) != text(wantErr) {
		t.Fatalf("Parse: error %q, the full decode %q\n%q", text(err), text(wantErr), document)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("results of %q (-full decode +Parse):\n%s", document, diff)
	}
	if err != nil && isStricter(err) {
		return
	}
	results, kyamlErr := readWithKyaml(document)
	if (err == nil) != (kyamlErr == nil) {
		t.Fatalf("Parse: error %q, kyaml %q\n%q", text(err), text(kyamlErr), document)
	}
	if diff := cmp.Diff(results, got); diff != "" {
		t.Fatalf("results of %q (-kyaml +Parse):\n%s", document, diff)
	}
}

// text returns an error's text.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
