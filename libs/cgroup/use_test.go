// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

func TestMemoryUse(t *testing.T) {
	const v2, v1 = "inactive_file 300\nactive_file 200\nfile_mapped 50\n",
		"inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 200\ntotal_mapped_file 50\n"
	tests := map[string]struct {
		reason             string
		used, use          string
		details, detailsIn string
		want               int64
		known              bool
	}{
		"version 2": {"cached files are not needed", "memory.current", "1000\n", v2, "memory.stat", 550, true},
		"version 1": {"likewise", "memory/memory.usage_in_bytes", "1000\n", v1, "memory/memory.stat", 550, true},
		"shared": {
			"mapped memory is no file", "memory.current", "1000\n", "file_mapped 900\nactive_file 100\n",
			"memory.stat", 1000, true,
		},
		"garbage":      {"it is no number", "memory.current", "much\n", v2, "memory.stat", 0, false},
		"no details":   {"files are not known", "memory.current", "1000\n", v2, "elsewhere", 0, false},
		"no container": {"there is no limit either", "elsewhere", "1000\n", v2, "memory.stat", 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, tc.used), tc.use)
			write(t, filepath.Join(root, tc.detailsIn), tc.details)
			if got, known := cgroup.MemoryUse(root); got != tc.want || known != tc.known {
				t.Errorf("in use are %d, known %t: want %d, %t: %s", got, known, tc.want, tc.known, tc.reason)
			}
		})
	}
}
