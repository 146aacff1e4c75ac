// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryBudgetIsDerived(t *testing.T) {
	limited, unlimited := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(limited, "memory.max"), []byte("268435456\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cfg    Config
		root   string
		want   int64
		reason string
	}{
		"set": {
			Config{MemoryBudgetBytes: 7 << 20, MaxMessageBytes: 6 << 20},
			limited, 7 << 20,
			"the operator's word counts",
		},
		"limited": {Config{MaxMessageBytes: 6 << 20}, limited, 32 << 20, "an eighth of the container's memory"},
		"small": {
			Config{MaxMessageBytes: 64 << 20},
			limited, 32 << 20,
			"larger requests do not make more memory: they go alone",
		},
		"unlimited": {Config{MaxMessageBytes: 6 << 20}, unlimited, 128 << 20, "as for a container of a gigabyte"},
		"large":     {Config{MaxMessageBytes: 64 << 20}, unlimited, 256 << 20, "some of the largest fit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.cfg.memoryBudget(tc.root); got != tc.want {
				t.Errorf("%d bytes, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}
