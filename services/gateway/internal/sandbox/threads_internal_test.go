// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestThreadsAreCountedAgain counts the threads of a user before and after it starts a process.
func TestThreadsAreCountedAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it has no user of its own")
	}
	const user = 0x6fffffff
	counted, now := &threads{user: user}, time.Now()
	if n := counted.countThreads(now); n != 0 {
		t.Fatalf("the user has %d threads", n)
	}
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if n := counted.countThreads(now.Add(countAgain / 2)); n != 0 {
		t.Errorf("%d threads right afterwards, want that they are not counted each time", n)
	}
	if n := counted.countThreads(now.Add(2 * countAgain)); n != 1 {
		t.Errorf("%d threads, want one", n)
	}
}
