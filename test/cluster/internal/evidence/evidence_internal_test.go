// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyTreeCopiesWhatItCan has a broken link, and a file that cannot be written, among the logs.
func TestCopyTreeCopiesWhatItCan(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	for _, name := range []string{"kubelet.log", "pods/default_p/main/0.log"} {
		if err := write(filepath.Join(from, name), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(from, "gone.log")); err != nil {
		t.Fatal(err)
	}
	// A directory with a file's name makes that file impossible to write.
	if err := os.MkdirAll(filepath.Join(to, "etcd.log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(from, "etcd.log"), nil); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err == nil || !strings.Contains(err.Error(), "etcd.log") {
		t.Errorf("error %v, want one about etcd.log", err)
	}
	for _, name := range []string{"kubelet.log", "pods/default_p/main/0.log"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); string(got) != name {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func TestCopyTreeSaysWhatIsMissing(t *testing.T) {
	if err := copyTree("/no/such/logs", t.TempDir()); err == nil {
		t.Error("no error about logs that are not there")
	}
}

func TestProcessLinesHaveTheCommand(t *testing.T) {
	const ended = 1 << 30 // No process has such a number.
	lines := strings.Split(string(processLines([]int{os.Getpid(), ended})), "\n")
	if !strings.Contains(lines[0], os.Args[0]) || (!strings.Contains(lines[0], "R (running)") &&
		!strings.Contains(lines[0], "S (sleeping)")) {
		t.Errorf("the line of this process is %q", lines[0])
	}
	if len(lines) != 3 {
		t.Errorf("there are %d lines, want one for each process", len(lines)-1)
	}
}

func TestGroupLinesAreInOrder(t *testing.T) {
	got := string(groupLines(map[string][]int{"/b": {2, 3}, "/a": nil}))
	if want := "/a []\n/b [2 3]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
