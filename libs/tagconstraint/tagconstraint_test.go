// SPDX-License-Identifier: Apache-2.0

package tagconstraint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

func TestHighest(t *testing.T) {
	tags := []string{
		"v0.4", "v0.4.1", "v0.4.5", "v0.5.0-rc1", "v1.0.0", "v1", "latest", "sha256-abc.sig", "v9.0.0-git-1234", "main",
	}
	tests := map[string]struct {
		reason     string
		constraint string
		want       string
	}{
		"tilde":       {"patch releases of one minor version", "~0.4.0", "v0.4.5"},
		"caret":       {"below 1.0 a caret keeps the minor version", "^0.4", "v0.4.5"},
		"wildcard":    {"a wildcard is a constraint", "0.x", "v0.4.5"},
		"range":       {"a range with two ends", ">=0.4.0, <1.0.0", "v0.4.5"},
		"any":         {"commit builds and signatures are no releases", "*", "v1.0.0"},
		"prerelease":  {"a pre-release only where the constraint names one", ">=0.5.0-0 <0.6.0", "v0.5.0-rc1"},
		"partial":     {"a partial version is a floating tag of its own", "v0.4", "v0.4"},
		"exact":       {"an exact version needs no list", "v0.4.1", "v0.4.1"},
		"literal":     {"any other tag is itself", "latest", "latest"},
		"no match":    {"nothing fits", ">=2.0.0", ""},
		"exact, gone": {"an exact version that is not there", "v0.4.9", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := tagconstraint.Parse(tc.constraint)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, ok := c.Highest(tags)
				if ok != (tc.want != "") || (ok && got != tc.want) {
					t.Errorf("Highest(%q) = %q, %v, want %q: %s", tc.constraint, got, ok, tc.want, tc.reason)
				}
				slices.Reverse(tags)
			}
		})
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "v1.2.3": true, "1.2.3-rc1": true, "latest": true,
		"~1.2": false, "v1": true, "1.x": false,
	} {
		c, err := tagconstraint.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if tag, ok := c.Exact(); ok != want || (ok && tag != text) {
			t.Errorf("Exact of %q = %q, %v, want %v", text, tag, ok, want)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for _, text := range []string{" ", ">", "not a tag", "a/b", ">=1.0 <", strings.Repeat(">1,", 1<<20)} {
		if _, err := tagconstraint.Parse(text); fault.Of(err) != fault.Invalid {
			t.Errorf("Parse(%.100q): %v, want an error of class invalid", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "v1.2.3", "~1.2", ">=1 <2 || 3.x", "latest", "*", "^", "1.2.3+meta", "🙂"} {
		f.Add(seed, "v1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, tag string) {
		c, err := tagconstraint.Parse(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("Parse(%q): class %v", text, fault.Of(err))
			}
			return
		}
		if got, ok := c.Highest([]string{tag}); ok && got != tag {
			t.Fatalf("Highest of %q for %q = %q", tag, text, got)
		}
	})
}
