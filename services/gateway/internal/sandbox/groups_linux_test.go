// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package sandbox_test

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// delegated makes a child process of the tests a user's one, in a control group that is the user's.
var delegated = flag.String("child.delegated", "", "for child processes: the directory of the user's control groups")

// delegate runs a program as a user to whom a directory of control groups of version 2 is delegated, as by systemd.
const delegate = `
groups=/sys/fs/cgroup/$1; shift
umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
before=$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir -p "$groups/own"; chown -R 64321:64321 "$groups"; echo $$ >"$groups/own/cgroup.procs"
setpriv --reuid=64321 --regid=64321 --clear-groups --bounding-set=-all --inh-caps=-all -- "$@" && ended=0 || ended=$?
echo $$ >"/sys/fs/cgroup$before/cgroup.procs"; rmdir "$groups/own" "$groups"
exit $ended
`

// TestRuncStaysInItsGroup runs a function by runc as a user who may make control groups: it gets none beside the
// program's own, in which no limit of its sandbox would hold.
func TestRuncStaysInItsGroup(t *testing.T) {
	if _, err := exec.LookPath("runc"); err != nil || os.Getuid() != 0 {
		t.Skip("it needs runc, and root to delegate control groups")
	}
	dir := t.TempDir()
	share(t, dir)
	program := filepath.Join(dir, "test")
	copyTo(t, program, os.Args[0])
	groups := filepath.Base(filepath.Dir(dir))
	cmd := exec.Command("unshare", "--mount", "--", "bash", "-euc", delegate, "bash", groups,
		program, "-test.run=^TestDelegated$", "-child.delegated=/sys/fs/cgroup/"+groups)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir} //nolint:forbidigo // of this machine
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyTo copies a program.
func copyTo(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil || out.Close() != nil {
		t.Fatal("copy the test's program: ", err)
	}
}

// TestDelegated is what the child process runs.
func TestDelegated(t *testing.T) {
	if *delegated == "" {
		return // this is no child process
	}
	l := find(t, "runc")
	cmd, _ := l.Command(sandbox.Function{Name: "fn@x", Root: "/", Program: []string{"/bin/sleep", "0.5"}, Dir: "/"})
	cmd.MaxOutput, cmd.MaxLog = 1<<10, 1<<14
	ended := make(chan error, 1)
	go func() {
		_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
		ended <- err
	}()
	for {
		made, _ := filepath.Glob(filepath.Join(*delegated, "*"))
		for _, group := range made {
			if name := filepath.Base(group); strings.Contains(name, "-") && !strings.HasPrefix(name, "function-runner-") {
				t.Fatalf("runc has made %s", group)
			}
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
