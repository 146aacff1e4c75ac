// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/unused"
)

func TestKeyNamesAllInputs(t *testing.T) {
	base := component.Component{Name: "etcd", Version: "v1.0.0", Inputs: []string{"ab", "c"}}
	for _, test := range []struct {
		reason string
		change func(*component.Component)
		same   bool
	}{
		{"equal inputs give the same key", func(*component.Component) {}, true},
		{"another name is another component", func(c *component.Component) { c.Name = "runc" }, false},
		{"another version is another component", func(c *component.Component) { c.Version = "v1.0.1" }, false},
		{"another input is another component", func(c *component.Component) { c.Inputs = []string{"ab", "d"} }, false},
		{"inputs are not just joined", func(c *component.Component) { c.Inputs = []string{"a", "bc"} }, false},
	} {
		changed := base
		test.change(&changed)
		if same := changed.Key() == base.Key(); same != test.same {
			t.Errorf("%s: %s and %s", test.reason, changed.Key(), base.Key())
		}
	}
}

func TestStoreBuildsOnce(t *testing.T) {
	store := component.Store{Dir: t.TempDir(), Log: &strings.Builder{}}
	var builds []string
	c := component.Component{Name: "tool", Version: "v1", Build: func(_ context.Context, dir string) error {
		// The store's lock guards the list.
		builds = append(builds, dir)
		return os.WriteFile(filepath.Join(dir, "tool"), []byte("program"), 0o755)
	}}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			dir, err := store.Get(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "tool")); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if len(builds) != 1 {
		t.Errorf("built %d times, want once", len(builds))
	}
}

// TestUseKeepsAComponent uses a component that is as old as a removed one.
func TestUseKeepsAComponent(t *testing.T) {
	store := component.Store{Dir: t.TempDir(), Log: &strings.Builder{}}
	c := component.Component{Name: "tool", Version: "v1", Build: func(context.Context, string) error { return nil }}
	dir, err := store.Get(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * unused.Limit)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := unused.Remove(store.Dir, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the component that was just used is gone: %v", err)
	}
}

func TestStoreKeepsNothingOfAFailedBuild(t *testing.T) {
	store := component.Store{Dir: t.TempDir(), Log: &strings.Builder{}}
	failure := errors.New("no compiler")
	c := component.Component{Name: "tool", Version: "v1", Build: func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), failure)
	}}
	if _, err := store.Get(t.Context(), c); !errors.Is(err, failure) {
		t.Fatalf("error %v does not have its cause", err)
	}
	left, err := filepath.Glob(filepath.Join(store.Dir, "tool-*[^k]"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
