// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "memory.max", "memory/memory.limit_in_bytes"
	tests := map[string]struct {
		file, content string
		want          int64
		known         bool
	}{
		"version 2":             {v2, "536870912\n", 512 << 20, true},
		"version 1":             {v1, "268435456\n", 256 << 20, true},
		"no limit in version 2": {v2, "max\n", 0, false},
		"no limit in version 1": {v1, "9223372036854771712\n", 0, false},
		"garbage":               {v2, "much\n", 0, false},
		"no control group":      {"elsewhere", "", 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), tc.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			root := file[:len(file)-len(tc.file)]
			if got, known := cgroup.MemoryLimit(root); known != tc.known || (known && got != tc.want) {
				t.Errorf("the limit is %d, known %t: want %d, %t", got, known, tc.want, tc.known)
			}
		})
	}
}
