// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

const source = `package p

// limit is how long a caller waits.
func keep() {} // of each caller

// maxWait limits the time that a caller waits. It is zero if callers wait without limit.
func limitWait() {} // seconds

//nolint:foo // what, whether, has
type held struct{}

type Told struct{}
`

func TestFormsOfGo(t *testing.T) {
	c := counts{}
	if err := c.addGo([]byte(source)); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]count{
		"definition by clause":            {1, 4},
		"clause in place of a noun":       {0, 4},
		"indirect question":               {1, 4},
		"zero value as a tail":            {0, 4},
		"trailing comment without a noun": {1, 2},
		"function of one word":            {1, 2},
		"type named by a participle":      {1, 1},
	} {
		if got := *c[form]; got != want {
			t.Errorf("%s: %+v, want %+v", form, got, want)
		}
	}
}

func TestFormsOfDocumentsAndCommits(t *testing.T) {
	c := counts{}
	c.addDocument("It has what others have: `what`\n```\nwhat\n```\n")
	if got, want := *c["clause in place of a noun"], (count{1, 5}); got != want {
		t.Errorf("documents: %+v, want %+v", got, want)
	}
	for _, s := range []string{
		"pool: drain outdated pods", "pool, kube: the owner deletes", "drain pods", "docs: words of runbooks",
		"status page: keep evaluations",
	} {
		c.addSubject(s)
	}
	if got, want := *c[nounSubject.name], (count{2, 5}); got != want {
		t.Errorf("nouns: %+v, want %+v", got, want)
	}
	if got, want := *c[plainSubject.name], (count{1, 5}); got != want {
		t.Errorf("areas: %+v, want %+v", got, want)
	}
}

func TestGoals(t *testing.T) {
	for _, c := range []struct {
		found, of int
		fails     bool
	}{{90, 1000, false}, {91, 1000, true}, {1, 10, true}, {0, 0, false}} {
		problems := findProblems(map[part]counts{"libs": {"have": {c.found, c.of}}})
		if (len(problems) > 0) != c.fails {
			t.Errorf("%d of %d: %v", c.found, c.of, problems)
		}
	}
}

func TestModules(t *testing.T) {
	modules := []string{"libs/go.mod", "functions/go.mod", "functions/apply-setters/go.mod"}
	for file, want := range map[string]string{
		"libs/retry/retry.go":             "libs",
		"functions/apply-setters/main.go": "functions/apply-setters",
		"tools.go":                        ".",
	} {
		if got := moduleOf(modules, file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
