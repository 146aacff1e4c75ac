// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"strconv"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// When a temporary directory is checked: regularly, and sooner the less may still be written.
const (
	tempCheck      = 50 * time.Millisecond
	spareTempCheck = time.Second
	// minTempCheck is the minimum time between checks, to limit their cost. A function can exceed the limit by the bytes
	// that it writes in this time, and until it is killed.
	minTempCheck = time.Millisecond
	// writeRate is the number of bytes that a function can write to files in memory per second with all its threads: the
	// kernel clears each page and copies to it.
	writeRate = 8 << 30
)

// nextTempCheck returns the time until the next check of a directory, so that it happens before free bytes can be
// written.
func nextTempCheck(free int64) time.Duration {
	inTime := time.Duration(float64(free) / writeRate * float64(time.Second))
	return min(max(inTime, minTempCheck), tempCheck)
}

// tempWatch regularly checks the temporary directory of a process. It uses a timer: waking a goroutine for each
// evaluation would occupy a processor when the function starts.
type tempWatch struct {
	mu    sync.Mutex
	timer *time.Timer // nil without a temporary directory
	ended bool
}

// watchTempDir starts checking the temporary directory, if any. The process is killed if it exceeds a limit.
func (p *process) watchTempDir() {
	if p.temp == nil && !p.cmd.Launch.boundsFiles() {
		return
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	p.background.Add(1)
	p.tempWatch.timer = time.AfterFunc(p.tempCheckAfter(p.tempLimit()), p.checkTempDir)
}

// tempCheckAfter returns the time until the next check if free bytes may still be written.
func (p *process) tempCheckAfter(free int64) time.Duration {
	if p.spare.inUse() {
		return nextTempCheck(free)
	}
	return spareTempCheck
}

// hurryTempDir checks as often as an evaluation requires, once an evaluation uses the process.
func (p *process) hurryTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && w.timer.Stop() { // if false, a running check notices the change
		w.timer.Reset(p.tempCheckAfter(p.tempLimit()))
	}
}

// unwatchTempDir stops the checks. A running check counts in p.background.
func (p *process) unwatchTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil && w.timer.Stop() {
		p.background.Done()
	}
}

// tempLimit returns the maximum number of bytes in the temporary directory.
func (p *process) tempLimit() int64 {
	if p.temp == nil {
		return p.cmd.Launch.TempBytes
	}
	return p.temp.Limit()
}

// tempFree returns the number of bytes that may still be written, or an error if a limit is exceeded.
func (p *process) tempFree() (free int64, err error) {
	if p.temp == nil {
		return p.tempLimit(), p.cmd.Launch.checkFiles(p.Pid)
	}
	free, ok := p.temp.Free()
	if !ok {
		return 0, limitError("temporary files", p.tempLimit())
	}
	return free, nil
}

// boundsFiles reports whether the runner counts the files of a sandbox.
func (l *Launch) boundsFiles() bool { return l != nil && l.TempFiles > 0 }

// checkFiles returns an error if a function created too many files in its sandbox. The argument is the launcher's pid.
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
