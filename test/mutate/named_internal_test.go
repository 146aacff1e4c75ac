// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// root is the repository, seen from this package.
const root = "../.."

// TestMutationsCanBeMade applies each mutation to the code as it is now, without building
// it: a change of the code that leaves a mutation behind is found here and not months later.
func TestMutationsCanBeMade(t *testing.T) {
	for _, m := range named {
		t.Run(m.Name, func(t *testing.T) {
			if !containsPath(packages, m.Package) {
				t.Errorf("%s is not in the list of packages: it would be left out", m.Package)
			}
			changed, err := m.apply(filepath.Join(root, m.Package))
			if err != nil {
				t.Fatal(err)
			}
			for path, content := range changed {
				if before, err := os.ReadFile(path); err != nil || bytes.Equal(before, content) {
					t.Errorf("%s stays as it is (%v)", path, err)
				}
			}
		})
	}
}

func TestEditsHaveOnePlace(t *testing.T) {
	e := edit{Old: `a+b`, New: "c"}
	for name, tc := range map[string]struct {
		files map[string][]byte
		ok    bool
	}{
		"once":                {map[string][]byte{"x.go": []byte("xaaby"), "y.go": nil}, true},
		"never":               {map[string][]byte{"x.go": []byte("xy")}, false},
		"twice":               {map[string][]byte{"x.go": []byte("ab ab")}, false},
		"once in each of two": {map[string][]byte{"x.go": []byte("ab"), "y.go": []byte("ab")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path, content, err := e.apply(tc.files)
			if (err == nil) != tc.ok {
				t.Fatalf("the error is %v", err)
			}
			if tc.ok && (path != "x.go" || string(content) != "xcy") {
				t.Errorf("%s becomes %q", path, content)
			}
		})
	}
}

// TestPackagesExist keeps the list of packages up to date.
func TestPackagesExist(t *testing.T) {
	for _, p := range packages {
		if sources, _ := filepath.Glob(filepath.Join(root, p.path(), "*.go")); len(sources) == 0 {
			t.Errorf("there is no package in %s", p.path())
		}
	}
}

func TestPrint(t *testing.T) {
	const output = "Starting...\n      KILLED CONDITIONALS_NEGATION at a.go:51:20\n" +
		"       LIVED ARITHMETIC_BASE at b.go:32:1\n" +
		"   TIMED OUT INVERT_NEGATIVES at b.go:33:1\n NOT COVERED ARITHMETIC_BASE at b.go:34:1\n"
	var got bytes.Buffer
	if err := (target{module: "libs", dir: "x"}).printResults(&got, []byte(output), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	fields := strings.Join(strings.Fields(got.String()), " ")
	if want := "libs/x 1 1 1 1 (as far as 1m0s went: -budget) lived: libs/x/b.go:32 ARITHMETIC_BASE"; fields != want {
		t.Errorf("it prints %q, want %q", fields, want)
	}
}
