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
	// minTempCheck is the shortest time between checks, which bounds what they cost. A function can
	// exceed the limit by what it writes in it, and until it is killed.
	minTempCheck = time.Millisecond
	// writeRate is how many bytes a function can write per second to files in memory, all its
	// threads together: the kernel clears each page and copies to it.
	writeRate = 8 << 30
)

// nextTempCheck returns when to check a directory again to which free bytes may still be written:
// before they are.
func nextTempCheck(free int64) time.Duration {
	inTime := time.Duration(float64(free) / writeRate * float64(time.Second))
	return min(max(inTime, minTempCheck), tempCheck)
}

// tempWatch checks the temporary directory of a process now and then. A timer does it: to wake
// a goroutine for each evaluation would take a processor from the function when it begins.
type tempWatch struct {
	mu    sync.Mutex
	timer *time.Timer // nil without a temporary directory
	ended bool
}

// watchTempDir begins to check the temporary directory, if there is one. The process is ended
// if there is too much in it.
func (p *process) watchTempDir() {
	if p.temp == nil && !p.cmd.Launch.boundsFiles() {
		return
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	p.background.Add(1)
	p.tempWatch.timer = time.AfterFunc(p.tempCheckAfter(p.tempLimit()), p.checkTempDir)
}

// tempCheckAfter returns when to check a directory again to which free bytes may be written.
func (p *process) tempCheckAfter(free int64) time.Duration {
	if p.spare.inUse() {
		return nextTempCheck(free)
	}
	return spareTempCheck
}

// hurryTempDir has checks come as often as an evaluation needs them: one has taken the process.
func (p *process) hurryTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && w.timer.Stop() { // otherwise a check is under way, which sees it
		w.timer.Reset(p.tempCheckAfter(p.tempLimit()))
	}
}

// unwatchTempDir ends the checks. One that is under way counts in p.background.
func (p *process) unwatchTempDir() {
	w := &p.tempWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil && w.timer.Stop() {
		p.background.Done()
	}
}

// tempLimit returns how many bytes may be written to the temporary directory.
func (p *process) tempLimit() int64 {
	if p.temp == nil {
		return p.cmd.Launch.TempBytes
	}
	return p.temp.Limit()
}

// tempFree returns how many bytes may still be written there, as far as that is known, or which limit was passed.
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

// boundsFiles reports whether the files of a sandbox are counted from outside.
func (l *Launch) boundsFiles() bool { return l != nil && l.TempFiles > 0 }

// checkFiles returns an error if a function has made too many files in its sandbox, whose launcher has that pid.
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
