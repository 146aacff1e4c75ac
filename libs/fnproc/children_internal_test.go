// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

func TestChildrenOf(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	scan := fstest.MapFS{
		"1/stat":    file("1 (init) S 0 1 1 0 -1 4194560"),
		"7/stat":    file("7 (sh) S 1 7 7 0 -1 4194560"),
		"8/stat":    file("8 (a) R 7 (b) S 1 8 8 0 -1 4194560"),
		"9/stat":    file("9 (sh) S 7 7 7 0 -1 4194560"),
		"10/stat":   file("10 (half"),
		"self/stat": file("1 (init) S 1 1 1 0 -1 4194560"),
	}
	list := fstest.MapFS{"1/task/1/children": file("7 8 "), "9/stat": file("9 (sh) S 1 9 9 0")}
	tests := map[string]struct {
		reason string
		proc   fstest.MapFS
		want   []int
	}{
		"list": {"the kernel's own list needs no scan", list, []int{7, 8}},
		"scan": {"without it, parents are read; a name may look like fields", scan, []int{7, 8}},
		"none": {"no process is no error", fstest.MapFS{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := childrenOf(tc.proc, 1)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("childrenOf = %v, %v, want %v: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestChildrenByScanOfThisSystem(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	got, err := childrenByScan(os.DirFS("/proc"), os.Getpid())
	if err != nil || !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("childrenByScan = %v, %v, want %d among them", got, err, cmd.Process.Pid)
	}
}

// failingFS is a file system without files that cannot be read the first failures times.
type failingFS struct{ failures int }

func (f *failingFS) Open(name string) (fs.File, error) {
	if f.failures--; f.failures >= 0 {
		return nil, unix.EMFILE
	}
	return fstest.MapFS{}.Open(name)
}

func TestKillOrphansRepeatsFailedScans(t *testing.T) {
	for failures, want := range map[int]bool{0: true, 1: true, 1e9: false} {
		synctest.Test(t, func(t *testing.T) {
			r := &Reaper{log: slog.New(slog.DiscardHandler), proc: &failingFS{failures}}
			if got := r.KillOrphans(); got != want {
				t.Errorf("after %d failures, KillOrphans = %t, want %t", failures, got, want)
			}
		})
	}
}

// TestProcessesThatEnd reads stat files: of a process that runs, of one that was killed, and of one that ends.
func TestProcessesThatEnd(t *testing.T) {
	const line = "7 (a) b) S 1 7 7 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 100 18446744073709551615 1 1 0 0 0 %d 0 0 0 0"
	for name, tc := range map[string]struct {
		flags, pending int
		want           bool
	}{
		"runs": {4194304, 0, false}, "was told to end": {4194304, 1 << 14, false},
		"was killed": {4194304, 1 << 8, true}, "ends": {4194304 | 4, 0, true},
	} {
		if got := isEnding(fmt.Appendf(nil, line, tc.flags, tc.pending)); got != tc.want {
			t.Errorf("a process that %s ends: %v", name, got)
		}
	}
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil || isEnding(own) {
		t.Errorf("this process ends: %q, %v", own, err)
	}
	if isEnding([]byte("7 (a) S 1")) {
		t.Error("a line that is too short is that of a process which ends")
	}
}
