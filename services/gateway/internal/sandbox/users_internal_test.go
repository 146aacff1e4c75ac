// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"
)

// TestUsersOfFunctionsAreNotToBeGuessed asks for the users of many functions twice, and in another program.
func TestUsersOfFunctionsAreNotToBeGuessed(t *testing.T) {
	l, other := newLauncher(Config{}, ""), newLauncher(Config{}, "")
	defer func() { _, _ = l.Close(), other.Close() }()
	l.root, other.root = true, true
	same := 0
	for i := range 100 {
		name := fmt.Sprint("fn@sha256:", i)
		user := l.userOf(name)
		if user < firstUser || user >= firstUser+users || l.userOf(name) != user {
			t.Errorf("%s has the user %d, then %d, want one of its own", name, user, l.userOf(name))
		}
		if user == other.userOf(name) {
			same++
		}
	}
	if same > 1 {
		t.Errorf("%d of 100 functions have the same user in another program", same)
	}
}
