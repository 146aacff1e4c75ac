// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

const sample = `
functions:
- function: set-namespace
  images:
  - example.com/catalog/set-namespace:v0.4.5
  - set-namespace:v0.4
  - example.com/catalog/set-namespace@` + digest + `
- function: other
  images:
  - set-namespace:v0.4
  - docker.io/nephio/other:v1
`

func TestTable(t *testing.T) {
	table, err := parseTable([]byte(sample), "/functions", "example.com/catalog", 1)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ image, want, reason string }{
		"full":  {"example.com/catalog/set-namespace:v0.4.5", "/functions/set-namespace", "as configured"},
		"short": {"set-namespace:v0.4.5", "/functions/set-namespace", "a short name is under the default prefix"},
		"short entry": {
			"example.com/catalog/set-namespace:v0.4", "/functions/set-namespace",
			"so is a short entry, and the first entry wins",
		},
		"digest": {
			"example.com/catalog/set-namespace@" + digest, "/functions/set-namespace",
			"a digest is matched by digest",
		},
		"tag and digest": {"set-namespace:v9@" + digest, "/functions/set-namespace", "a tag beside a digest selects nothing"},
		"alias":          {"nephio/other:v1", "/functions/other", "docker.io is the default registry"},
		"other tag":      {"set-namespace:v0.5", "", "another version is another function"},
		"foreign":        {"evil.example/catalog/set-namespace:v0.4.5", "", "a foreign registry never matches"},
		"foreign suffix": {
			"evil.example/example.com/catalog/set-namespace:v0.4.5", "",
			"not even with our path as its suffix",
		},
		"foreign digest":  {"evil.example/catalog/set-namespace@" + digest, "", "nor by digest: it would run with our trust"},
		"foreign no path": {"docker.io/set-namespace:v0.4.5", "", "a name with a slash is never under the default prefix"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			image, err := imagename.Parse(tc.image, "example.com/catalog")
			if err != nil {
				t.Fatal(err)
			}
			if got := table.binaries[image.Key()]; got != tc.want {
				t.Errorf("%s is mapped to %q, want %q: %s", tc.image, got, tc.want, tc.reason)
			}
		})
	}
	if len(table.repeated) != 1 {
		t.Errorf("repeated are %v, want the one image that is there twice", table.repeated)
	}
}

func TestTableRejects(t *testing.T) {
	for content, want := range map[string]string{
		"functions: [{function: ../../bin/sh, images: [a:v1]}]":    `functions[0].function: "../../bin/sh"`,
		"functions: [{function: .., images: [a:v1]}]":              `functions[0].function: ".."`,
		"functions: [{images: [a:v1]}]":                            `functions[0].function: ""`,
		"functions: [{function: a, images: [ok:v1, 'not ok:v1']}]": "functions[0].images[1]",
		"functions: {": "not the YAML",
		"functions: a": "not the YAML",
		"functions: [{function: a, prefork: -1}]":  "functions[0].prefork: -1 is not a number from 0 (off) to 64",
		"functions: [{function: a, prefork: 65}]":  "functions[0].prefork: 65",
		"functions: [{function: a, prefork: all}]": "not the YAML",
		"functions: [{function: a, maxEvaluationTime: 0s}]": "functions[0].maxEvaluationTime: " +
			"0s is not a time of more than zero",
		"functions: [{function: a, maxEvaluationTime: soon}]": "not the YAML",
		"\xff\xfe\x00broken": "not the YAML",
		// No functions are written as such: all of them would be gone.
		"":                        "it lists no functions",
		"# set-namespace\n":       "it lists no functions",
		"function: []":            "it lists no functions",
		"functions:":              "it lists no functions",
		"functions: # truncated ": "it lists no functions",
		"- function: a":           "not the YAML",
	} {
		if _, err := parseTable([]byte(content), "/functions", "", 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseTable(%q) = %v, want an error that says %q", content, err, want)
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	if table, err := parseTable([]byte("functions: []"), "/functions", "", 1); err != nil || len(table.binaries) != 0 {
		t.Errorf("parseTable = %v, %v: an empty list of functions is valid", table, err)
	}
}

func TestTableWarnsOfUnknownFields(t *testing.T) {
	const file = `
version: 1
functions:
- {function: a, images: ["a:v1"], image: "b:v1"}
- &last {function: c, images: ["c:v1"], Prefork: 3}
- *last
`
	table, err := parseTable([]byte(file), "/functions", "example.com", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"line 2: unknown field version",
		"line 4: unknown field image",
		"line 5: unknown field Prefork",
		"line 5: unknown field Prefork", // by the alias
	}
	if diff := cmp.Diff(want, table.ignored); diff != "" {
		t.Errorf("ignored (-want, +got):\n%s", diff)
	}
}

func TestTableOfSeveralDocuments(t *testing.T) {
	const first = "functions: [{function: a, images: [a]}]\n---\n"
	for rest, want := range map[string]string{
		"functions: [{function: b, images: [b]}]\n": "a second document",
		"functions: [\n": "a second document",
		"# nothing\n":    "",
		"...\n":          "",
	} {
		table, err := parseTable([]byte(first+rest), "/functions", "example.com", 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(table.ignored, ", "); got != want || len(table.binaries) != 1 {
			t.Errorf("ignored before %q is %q, want %q", rest, got, want)
		}
	}
}

func TestTablePrefork(t *testing.T) {
	const file = `
functions:
- {function: silent, images: [silent:v1]}
- {function: "off", images: ["off:v1"], prefork: 0}
- {function: many, images: [many:v1]}
- {function: many, images: [many:v2], prefork: 5}
- {function: late, images: [many:v2], prefork: 5}
- {function: many, images: [many:v3], prefork: 6}
`
	table, err := parseTable([]byte(file), "/functions", "example.com", 1)
	if err != nil {
		t.Fatal(err)
	}
	for binary, want := range map[string]int{
		"/functions/silent": 1, // the gateway's own setting
		"/functions/off":    0,
		"/functions/many":   5, // the first entry that says it
		"/functions/gone":   0, // no image is mapped to it
		"/functions/late":   0, // its image is mapped to another one
	} {
		if got := table.prefork[binary]; got != want {
			t.Errorf("%d processes of %s are kept started, want %d", got, binary, want)
		}
	}
}

func TestTableMaxEvaluationTime(t *testing.T) {
	const file = `
functions:
- {function: silent, images: [silent:v1]}
- {function: slow, images: [slow:v1], maxEvaluationTime: 20m}
- {function: slow, images: [slow:v2], maxEvaluationTime: 1s}
`
	table, err := parseTable([]byte(file), "/functions", "example.com", 1)
	if err != nil {
		t.Fatal(err)
	}
	for binary, want := range map[string]time.Duration{
		"/functions/silent": 0, // the gateway's own setting
		"/functions/slow":   20 * time.Minute,
	} {
		if got := table.maxTime[binary]; got != want {
			t.Errorf("%s may run for %v, want %v", binary, got, want)
		}
	}
}

func FuzzParseTable(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("functions: [{function: a, images: [b]}]"))
	f.Add([]byte("functions: &a [*a]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		table, err := parseTable(content, "/functions", "example.com", 1)
		if err != nil {
			return
		}
		for key, binary := range table.binaries {
			if !strings.HasPrefix(binary, "/functions/") || strings.Contains(binary, "/../") {
				t.Errorf("%q is mapped to %q, outside the directory of functions", key, binary)
			}
		}
	})
}
