// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	limited, unlimited := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(limited, "memory.max"), []byte("1073741824\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for name, tc := range map[string]struct {
		root, variable string
		want           int64
		reason         string
	}{
		"limited":   {limited, "", 640 << 20, "the container's limit counts"},
		"said":      {limited, "100MiB", before, "the operator's word counts, which Go has read itself"},
		"unlimited": {unlimited, "", before, "there is nothing to keep to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.variable)
			debug.SetMemoryLimit(before)
			if limitMemory(tc.root); debug.SetMemoryLimit(-1) != tc.want {
				t.Errorf("the limit is %d, want %d: %s", debug.SetMemoryLimit(-1), tc.want, tc.reason)
			}
		})
	}
}
