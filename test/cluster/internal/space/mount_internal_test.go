// SPDX-License-Identifier: Apache-2.0

package space

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBelowFindsWhatWouldBeCovered uses a home directory of a service's user, such as /var/lib has,
// with a link to it and a cache in it.
func TestBelowFindsWhatWouldBeCovered(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	covered, home := filepath.Join(dir, "lib"), filepath.Join(dir, "lib", "ci")
	cache, link := filepath.Join(home, ".cache"), filepath.Join(dir, "home")
	for _, path := range []string{cache, filepath.Join(dir, "library")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	got := existingBelow([]string{covered}, []string{
		cache, link, home,
		covered,                       // cannot be kept as a whole
		filepath.Join(dir, "library"), // is beside it
		filepath.Join(home, "missing"),
	})
	if want := []string{home, cache}; !slices.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
}
