// SPDX-License-Identifier: Apache-2.0

package fnproc

import "time"

// When a temporary directory is checked: regularly, and sooner the less may still be written.
const (
	tempCheck      = 50 * time.Millisecond
	spareTempCheck = time.Second
	// minTempCheck bounds what the checks cost. What is written in it, and until the kill,
	// is what a function may exceed the limit by.
	minTempCheck = time.Millisecond
	// writeRate is how many bytes a function can write per second to files in memory, all its
	// threads together: the kernel clears each page and copies to it.
	writeRate = 8 << 30
)

// nextTempCheck returns when to check a directory again to which so many bytes may still be
// written: before they are.
func nextTempCheck(free int64) time.Duration {
	inTime := time.Duration(float64(free) / writeRate * float64(time.Second))
	return min(max(inTime, minTempCheck), tempCheck)
}

// watchTempDir ends the process if there is too much in its temporary directory. It returns
// when the process has ended.
func (p *process) watchTempDir() {
	taken := p.taken
	wait := spareTempCheck
	for {
		select {
		case <-p.exited:
			return
		case <-taken:
			taken, wait = nil, nextTempCheck(p.temp.Limit())
			continue // the evaluation needs the processor now
		case <-time.After(wait):
		}
		free, ok := p.temp.Free()
		if !ok {
			p.spare.end()
			p.end(limitError("temporary files", p.temp.Limit()))
			return
		}
		if taken == nil {
			wait = nextTempCheck(free)
		}
	}
}
