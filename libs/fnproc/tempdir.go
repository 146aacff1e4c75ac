// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"strconv"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// tempCheck is the maximum time between checks of a function's temporary directory. The fewer bytes are free, the
// sooner the next check follows. While a process still waits for an evaluation, the time is spareTempCheck instead.
const (
	tempCheck      = 50 * time.Millisecond
	spareTempCheck = time.Second
	// minTempCheck is the minimum time between checks, to limit their cost. A function can exceed its limit by the bytes
	// that it writes between two checks and before it is killed.
	minTempCheck = time.Millisecond
	// writeRate is the maximum number of bytes per second that a function can write to files in memory, with all its
	// threads together. The kernel cannot be faster, because it must clear each page before it copies the bytes.
	writeRate = 8 << 30
)

// nextTempCheck returns the delay until the next check of a temporary directory. Free is the number of bytes that the
// function may still write. During the delay, the function cannot write that many bytes, unless the delay is
// minTempCheck.
func nextTempCheck(free int64) time.Duration {
	inTime := time.Duration(float64(free) / writeRate * float64(time.Second))
	return min(max(inTime, minTempCheck), tempCheck)
}

// tempWatch regularly checks the size of a process's temporary directory. It uses a timer instead of a goroutine. A
// goroutine would run once at the start of each evaluation, and take processor time from the starting function.
type tempWatch struct {
	mu    sync.Mutex
	timer *time.Timer // nil without a temporary directory
	ended bool
}

// watchTempDir starts regular checks of the process's temporary directory, if there is one. A check kills the process
// if the directory exceeds a limit.
func (p *process) watchTempDir() {
	if p.temp == nil && p.launcher.TempFiles == 0 {
		return
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	p.background.Add(1)
	p.tempWatch.timer = time.AfterFunc(p.tempCheckAfter(p.tempLimit()), p.checkTempDir)
}

// tempCheckAfter returns the delay until the next check of the temporary directory. Free is the number of bytes that
// the process may still write there.
func (p *process) tempCheckAfter(free int64) time.Duration {
	if p.spare.inUse() {
		return nextTempCheck(free)
	}
	return spareTempCheck
}

// hurryTempDir makes the next check of the temporary directory earlier. An evaluation calls it when it takes a process
// that was started in advance, because only processes in use need frequent checks.
func (p *process) hurryTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && w.timer.Stop() { // if Stop returns false, the running check sets the timer
		w.timer.Reset(p.tempCheckAfter(p.tempLimit()))
	}
}

// unwatchTempDir stops the checks of the temporary directory. Callers must wait for a running check with
// p.background.Wait.
func (p *process) unwatchTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil && w.timer.Stop() {
		p.background.Done()
	}
}

// tempLimit returns the maximum number of bytes that the process may write to its temporary directory.
func (p *process) tempLimit() int64 {
	if p.temp == nil {
		return p.launcher.TempBytes
	}
	return p.temp.Limit()
}

// tempFree returns the number of bytes that the process may still write to its temporary directory, or an error if
// a limit is exceeded.
func (p *process) tempFree() (free int64, err error) {
	if p.temp == nil {
		return p.tempLimit(), p.launcher.checkFiles(p.Pid)
	}
	free, ok := p.temp.Free()
	if !ok {
		return 0, limitError("temporary files", p.tempLimit())
	}
	return free, nil
}

// checkFiles returns an error if a function created too many files in its sandbox. Launcher is the pid of the
// launcher.
func (l *Launch) checkFiles(launcher int) error {
	for _, pid := range childrenOfThreads(launcher) {
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			files := filesInMemory("/proc/"+strconv.Itoa(pid)+"/root"+dir, l.TempBytes)
			if files > l.TempFiles {
				return fault.New(fault.Exhausted, "%w", &LimitError{Stream: dir, Unit: "files", Limit: l.TempFiles})
			}
		}
	}
	return nil
}

func (p *process) checkTempDir() {
	free, err := p.tempFree()
	if err != nil {
		p.spare.retire()
		p.kill(err)
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	if err != nil || p.tempWatch.ended {
		p.background.Done()
		return
	}
	p.tempWatch.timer.Reset(p.tempCheckAfter(free))
}
