// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"
	"time"
)

const (
	// quickWindow and slowWindow are the times over which requests are counted. The quick rate follows a
	// rise within seconds. The slow one is steady enough for headroom that holds.
	quickWindow = 2 * time.Second
	slowWindow  = time.Minute
	// headroom is for how many standard deviations of random arrivals (Poisson's) there is capacity beyond
	// the mean of the slow rate. The quick rate itself varies as much as the number of leases does.
	headroom = 4
	// spread bounds the headroom: so many times as far as the most leases at a time were above the mean. Arrivals
	// that are not random have no spread: a caller that calls again as soon as it has an answer never has two leases.
	spread = 2
	// serviceWindow is over how many leases the time that one takes is averaged.
	serviceWindow = 64
)

// forecast is how many leases of a function there will be at a time. It knows only requests and ends of
// leases: times come with these.
type forecast struct {
	quick, slow rate
	service     float64 // mean time of a lease, in seconds
	ended       int     // the leases in it, up to serviceWindow
	most        peak    // leases at a time
	peak        peak    // pods that were needed
}

// arrive counts a request.
func (f *forecast) arrive(now time.Time) {
	quick, slow := f.windows()
	f.quick.count(now, quick)
	f.slow.count(now, slow)
}

// hold records how many leases there are at a time.
func (f *forecast) hold(now time.Time, leases int) {
	_, slow := f.windows()
	f.most.record(now, leases, slow)
}

// retract takes back a request that came at a time, and was rejected: its caller tries again, which
// would count as more requests than there are.
func (f *forecast) retract(came time.Time) {
	quick, slow := f.windows()
	f.quick.retract(came, quick)
	f.slow.retract(came, slow)
}

// serve counts how long a lease was held.
func (f *forecast) serve(took time.Duration) {
	f.ended = min(f.ended+1, serviceWindow)
	f.service += (took.Seconds() - f.service) / float64(f.ended)
}

// windows are the times over which requests are counted now. Over a much shorter time than a lease takes, a
// single request would count as many leases at a time.
func (f *forecast) windows() (quick, slow time.Duration) {
	service := time.Duration(f.service * float64(time.Second))
	return max(quickWindow, service/2), max(slowWindow, 4*service)
}

// leases returns how many leases there will be at a time: as many as arrive in the time that one takes (Little's
// law), and headroom. It is zero until a lease has ended.
func (f *forecast) leases(now time.Time) float64 {
	quick, slow := f.windows()
	mean := f.slow.at(now, slow) * f.service
	above := max(float64(f.most.at(now, slow))-mean, 0)
	return max(f.quick.at(now, quick)*f.service, mean+min(headroom*math.Sqrt(mean), spread*above))
}

// rate is an exponentially weighted number of events.
type rate struct {
	value float64
	since time.Time
}

// at returns the events per second at a time. One event alone gives no rate, whatever the window was when it was
// counted.
func (r *rate) at(now time.Time, window time.Duration) float64 {
	return max(r.decayed(now, window)-1, 0) / window.Seconds()
}

// decayed is what earlier events count for.
func (r *rate) decayed(now time.Time, window time.Duration) float64 {
	return r.value * math.Exp(-now.Sub(r.since).Seconds()/window.Seconds())
}

// count counts an event.
func (r *rate) count(now time.Time, window time.Duration) {
	r.value, r.since = r.decayed(now, window)+1, now
}

// retract takes back an event that was counted at a time.
func (r *rate) retract(counted time.Time, window time.Duration) {
	r.value = max(r.value-math.Exp(-r.since.Sub(counted).Seconds()/window.Seconds()), 0)
}

// peak is the highest number of late: of the present period and the one before.
type peak struct {
	former, present int
	since           time.Time // when the present period began
}

// record adds a number.
func (p *peak) record(now time.Time, n int, period time.Duration) {
	p.pass(now, period)
	p.present = max(p.present, n)
}

// at returns the highest number.
func (p *peak) at(now time.Time, period time.Duration) int {
	p.pass(now, period)
	return max(p.former, p.present)
}

// pass begins a period if the present one is over.
func (p *peak) pass(now time.Time, period time.Duration) {
	switch age := now.Sub(p.since); {
	case age < period:
		return
	case age < 2*period:
		p.former, p.present = p.present, 0
	default:
		p.former, p.present = 0, 0
	}
	p.since = now
}
