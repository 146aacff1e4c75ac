// SPDX-License-Identifier: Apache-2.0

package fnproc

import "time"

// demandWindow is how long a peak counts at least; it counts for up to twice as long.
const demandWindow = 5 * time.Minute

// burstFactor is how many times the spare processes of a command a peak may have kept.
const burstFactor = 4

// MostSpares returns the most spare processes that are kept of a command of which Keep returns so many.
func MostSpares(keep int) int { return burstFactor * keep }

// demand is how many evaluations of a command have run at a time lately. Callers that evaluate many packages at
// once will do so again, and with as many spare processes none of these has to wait for a start.
type demand struct {
	running int
	peak    int // of this window
	before  int // of the window before it
	since   time.Time
}

func (d *demand) began(now time.Time) {
	d.running++
	d.roll(now)
	d.peak = max(d.peak, d.running)
}

func (d *demand) ended() { d.running-- }

// roll begins the next window if it is due.
func (d *demand) roll(now time.Time) {
	switch windows := now.Sub(d.since) / demandWindow; {
	case windows >= 2: // none began meanwhile
		d.before, d.peak, d.since = d.running, d.running, now
	case windows == 1:
		d.before, d.peak, d.since = d.peak, d.running, d.since.Add(demandWindow)
	}
}

// spares returns how many spare processes to keep, of which keep are kept anyway.
func (d *demand) spares(keep int, now time.Time) int {
	d.roll(now)
	return min(max(keep, d.peak, d.before), MostSpares(keep))
}
