// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"testing"
	"unicode/utf8"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

func TestStart(t *testing.T) {
	tests := map[string]struct {
		reason string
		in     string
		limit  int
		want   string
		all    bool
	}{
		"fits":      {"a text within the limit stays as it is", "abc", 3, "abc", true},
		"too long":  {"the beginning stays", "abcd", 3, "abc", false},
		"character": {"no character is cut", "äöü", 3, "ä", false},
		"nothing":   {"a limit of zero leaves nothing", "ä", 0, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, all := excerpt.Start(tc.in, tc.limit); got != tc.want || all != tc.all {
				t.Errorf("Start(%q, %d) = %q, %v, want %q, %v: %s", tc.in, tc.limit, got, all, tc.want, tc.all, tc.reason)
			}
		})
	}
}

func TestMiddle(t *testing.T) {
	tests := map[string]struct {
		reason string
		in     string
		limit  int
		want   string
	}{
		"fits":      {"a text within the limit stays as it is", "abcdef", 6, "abcdef"},
		"too long":  {"both ends stay: the cause is at either", "abcdefgh", 4, "ab [… 4 bytes left out …] gh"},
		"character": {"no character is cut", "äöüäöü", 6, "ä [… 8 bytes left out …] ü"},
		"nothing":   {"a limit of zero leaves the note", "abc", 0, " [… 3 bytes left out …] "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := excerpt.Middle(tc.in, tc.limit)
			if got != tc.want {
				t.Errorf("Middle(%q, %d) = %q, want %q: %s", tc.in, tc.limit, got, tc.want, tc.reason)
			}
			if !utf8.ValidString(got) {
				t.Errorf("Middle(%q, %d) = %q is not UTF-8", tc.in, tc.limit, got)
			}
		})
	}
}
