// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLaunchRegistersWithTheWatch launches a process. From then on the Watch may kill it, even before start returns.
func TestLaunchRegistersWithTheWatch(t *testing.T) {
	watch := NewWatch(func() (Usage, bool) { return Usage{}, false }, nil)
	isKnown := func(p *process) bool {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		_, ok := watch.running[p]
		return ok
	}
	p := NewRunner(Config{Watch: watch}).newProcess(Command{Path: "/bin/sleep", Args: []string{"600"}})
	theirs, err := p.openPipes()
	defer closeAll(theirs)
	defer p.closePipes()
	if err == nil {
		err = p.launch(theirs)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !isKnown(p) {
		t.Error("the Watch does not know a started process")
	}
	p.kill(errNotNeeded)
	_ = awaitEnd(p.Pid)
	if _, err := p.reap(); err != nil || isKnown(p) {
		t.Errorf("the process ended: %v; the Watch knows it: %t, want false", err, isKnown(p))
	}
}

// TestNoKillAfterReaping: the ids of a process that was reaped may be another's, as here.
func TestNoKillAfterReaping(t *testing.T) {
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Process: ended.Process}
	if _, err := p.reap(); err != nil {
		t.Fatal(err)
	}
	p.Process = other.Process
	p.kill(errNotNeeded)
	var info unix.Siginfo
	// A signal that is sent to a process ends it before its next wait in the kernel is over.
	if err := other.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, other.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	const stopped = 5 // CLD_STOPPED
	if info.Code != stopped {
		t.Errorf("another process that got the ids of one that was reaped has ended (code %d)", info.Code)
	}
}

// TestPacketsDoNotDelayTheEnd has a process log packets (O_DIRECT) and keep its log open. The kernel discards the rest
// of a packet that does not fit into the buffer of a read, so we read fewer bytes than the pipe contains.
func TestPacketsDoNotDelayTheEnd(t *testing.T) {
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = pipe.Close(), writer.Close() }()
	if _, err := unix.FcntlInt(writer.Fd(), unix.F_SETFL, unix.O_DIRECT); err != nil {
		t.Fatal(err)
	}
	packet := strings.Repeat("packet! ", 500)
	for range 3 {
		if _, err := writer.WriteString(packet); err != nil {
			t.Fatal(err)
		}
	}
	if err := pipe.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	log := newCollector("log", pipe, 1<<20, minBuffer)
	log.cut = true
	err = log.readAll(func(int) bool { return false })
	if want := packet + packet[:minBuffer-len(packet)] + packet; err != nil || string(log.buf) != want {
		t.Errorf("%v, log of %d bytes, want %d", err, len(log.buf), len(want))
	}
}

// TestAbandonedZombies has a child in our own session that its parent does not wait for.
func TestAbandonedZombies(t *testing.T) {
	other := exec.Command("true")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(other.Process.Pid); err != nil {
		t.Fatal(err)
	}
	r := &Reaper{ended: map[int]time.Time{}}
	pid := other.Process.Pid
	if r.isAbandoned(pid, time.Time{}) || r.ended[pid].IsZero() {
		t.Errorf("a child that has just ended counts as abandoned, or its time is not noted (%v)", r.ended)
	}
	if r.isAbandoned(pid, time.Now().Add(-abandoned+time.Second)) {
		t.Error("it counts as abandoned too early")
	}
	if !r.isAbandoned(pid, time.Now().Add(-abandoned-time.Second)) {
		t.Error("it does not count as abandoned in the end")
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	if r.isAbandoned(pid, time.Now().Add(-2*abandoned)) {
		t.Error("what was waited for counts as abandoned")
	}
}
