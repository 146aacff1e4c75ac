// SPDX-License-Identifier: Apache-2.0

package state

import (
	"strings"
	"testing"
)

func TestStartTime(t *testing.T) {
	before := strings.Repeat("0 ", 18)
	for _, test := range []struct {
		reason, stat, want string
		fails              bool
	}{
		{"the 22nd field", "42 (sleep) S " + before + "777 0 0", "777", false},
		{"a name with blanks and parentheses", "42 (a) b (c) S " + before + "778 0", "778", false},
		{"a zombie has ended", "42 (sleep) Z " + before + "777 0", "", true},
		{"a line that is cut off", "42 (sleep) S 1 2", "", true},
		{"no line at all", "", "", true},
	} {
		got, err := startTime(test.stat)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %q, %v", test.reason, got, err)
		}
	}
}
