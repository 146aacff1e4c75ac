// SPDX-License-Identifier: Apache-2.0

package fnproc

import "time"

// How often a temporary directory is looked at: how much can be written in between is what
// a limit may be passed by.
const (
	tempLook      = 50 * time.Millisecond
	spareTempLook = time.Second
)

// watchTempDir ends the process if there is too much in its temporary directory. It returns
// when the process has ended.
func (p *process) watchTempDir() {
	taken := p.taken
	wait := spareTempLook
	for {
		select {
		case <-p.exited:
			return
		case <-taken:
			taken, wait = nil, tempLook
			continue // the evaluation needs the processor now
		case <-time.After(wait):
		}
		if p.temp.Exceeded() {
			p.spare.end()
			p.end(limitError("temporary files", p.temp.Limit()))
			return
		}
	}
}
