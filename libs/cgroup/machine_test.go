// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

func TestMachineMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "meminfo")
	if _, _, ok := cgroup.MachineMemory(file); ok {
		t.Error("it is known without a file")
	}
	const content = "MemTotal:        8126000 kB\nMemFree:          125000 kB\n" +
		"MemAvailable:    4063000 kB\nBuffers:  12 kB\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	total, available, ok := cgroup.MachineMemory(file)
	if total != 8126000<<10 || available != 4063000<<10 || !ok {
		t.Errorf("%d of %d bytes are available, %v", available, total, ok)
	}
}
