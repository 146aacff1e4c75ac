package space

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBelowFindsWhatWouldBeCovered has a home of a service's user, as /var/lib has some,
// with a link to it and a cache in it.
func TestBelowFindsWhatWouldBeCovered(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	covered, home := filepath.Join(dir, "lib"), filepath.Join(dir, "lib", "ci")
	cache, link := filepath.Join(home, ".cache"), filepath.Join(dir, "home")
	for _, folder := range []string{cache, filepath.Join(dir, "library")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	got := below([]string{covered}, []string{
		cache, link, home,
		covered,                       // all of it cannot be kept
		filepath.Join(dir, "library"), // is beside it
		filepath.Join(home, "missing"),
	})
	if want := []string{home, cache}; !slices.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
}
