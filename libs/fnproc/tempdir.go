// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"sync"
	"time"
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
	if p.temp == nil {
		return
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	p.background.Add(1)
	p.tempWatch.timer = time.AfterFunc(p.tempCheckAfter(p.temp.Limit()), p.checkTempDir)
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
		w.timer.Reset(p.tempCheckAfter(p.temp.Limit()))
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

func (p *process) checkTempDir() {
	free, ok := p.temp.Free()
	if !ok {
		p.spare.retire()
		p.kill(limitError("temporary files", p.temp.Limit()))
	}
	p.tempWatch.mu.Lock()
	defer p.tempWatch.mu.Unlock()
	if !ok || p.tempWatch.ended {
		p.background.Done()
		return
	}
	p.tempWatch.timer.Reset(p.tempCheckAfter(free))
}
