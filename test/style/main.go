// SPDX-License-Identifier: Apache-2.0

// Command style counts discouraged forms of sentences and names. It counts them separately for each module, for the
// documents and for the commits. It fails if a form is more frequent in such a part than CONTRIBUTING.md permits.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the repository's directory")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// part is a module's directory, "documents" or "commits". Each part has its own counts of discouraged forms.
type part = string

func run(root string) error {
	present, err := measureForms(root)
	if err != nil {
		return err
	}
	if problems := findProblems(present); len(problems) > 0 {
		return fmt.Errorf("%s\nuse nouns and the field's terms instead (CONTRIBUTING.md#words)", strings.Join(problems, "\n"))
	}
	return nil
}

func allForms(p part) []form {
	switch p {
	case "documents":
		return documentForms
	case "commits":
		return []form{nounSubject, plainSubject}
	}
	return append([]form{fragment, oneWordFunction, participleType}, commentForms...)
}

// findProblems describes each discouraged form that a part of the repository uses more often than permitted.
func findProblems(present map[part]counts) []string {
	var problems []string
	for _, p := range slices.Sorted(maps.Keys(present)) {
		for _, f := range allForms(p) {
			if n := *present[p].countOf(f); !n.reachesGoal(f) {
				problems = append(problems, fmt.Sprintf("%s: %d times %q in %d, at most %g of %g",
					p, n.found, f.name, n.of, f.goal, f.per))
			}
		}
	}
	return problems
}

var generated = regexp.MustCompile(`_test\.go$|^libs/gen/|(^|/)testdata/`)

// measureForms counts the discouraged forms in all Go and Markdown files, except for tests and generated code, and
// in the last 200 commits.
func measureForms(root string) (map[part]counts, error) {
	modules, err := gitLines(root, "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	files, err := gitLines(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "*.md")
	if err != nil {
		return nil, err
	}
	present := map[part]counts{}
	in := func(p part) counts {
		if present[p] == nil {
			present[p] = counts{}
		}
		return present[p]
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case os.IsNotExist(err) || generated.MatchString(name):
			continue
		case err != nil:
			return nil, err
		case strings.HasSuffix(name, ".md"):
			in("documents").addDocument(string(text))
			continue
		}
		if err := in(moduleOf(modules, name)).addGo(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	subjects, err := gitLines(root, "log", "-200", "--no-merges", "--format=%s")
	for _, s := range subjects {
		in("commits").addSubject(s)
	}
	return present, err
}

func moduleOf(modules []string, file string) string {
	longest := "."
	for _, m := range modules {
		if dir := filepath.Dir(m); strings.HasPrefix(file, dir+"/") && len(dir) > len(longest) {
			longest = dir
		}
	}
	return longest
}

func gitLines(root string, args ...string) ([]string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}
