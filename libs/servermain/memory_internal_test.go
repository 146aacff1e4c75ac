// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleProgramsReturnMemory lets a program keep large lists while it is idle, and drop them later.
func TestIdleProgramsReturnMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collection but those of returnMemory
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = returnMemory(ctx) }()
		synctest.Wait()
		before := readUsage().mapped
		list := make([]byte, 4*worthReturning)
		for i := range list {
			list[i] = 1
		}
		<-time.After(2 * returnInterval)
		if used := readUsage().mapped - before; used < 3*worthReturning {
			t.Errorf("%d bytes are occupied by a list of %d", used, len(list))
		}
		runtime.KeepAlive(list)
		<-time.After(2 * returnInterval)
		if left := int64(readUsage().mapped) - int64(before); left > worthReturning {
			t.Errorf("%d bytes are still occupied after the list was dropped", left)
		}
	})
}

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
