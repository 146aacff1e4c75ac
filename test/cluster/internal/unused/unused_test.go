// SPDX-License-Identifier: Apache-2.0

package unused_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/unused"
)

func TestRemoveLeavesWhatIsUsed(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-unused.Limit-time.Hour)
	for _, test := range []struct {
		name, reason string
		touch, left  bool
	}{
		{"forgotten", "it was unused for long", false, false},
		{"touched", "it is old, but was used just now", true, true},
		{"running", "a cluster runs it", false, true},
	} {
		path := filepath.Join(dir, test.name)
		if err := os.MkdirAll(filepath.Join(path, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if test.touch {
			if err := unused.Touch(path); err != nil {
				t.Fatal(err)
			}
		}
		keep := func(path string) bool { return filepath.Base(path) == "running" }
		if err := unused.Remove(dir, keep); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{path, path + ".lock"} {
			if _, err := os.Stat(file); (err == nil) != test.left {
				t.Errorf("%s: %s: %v", test.reason, file, err)
			}
		}
	}
}
