// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Clock tracks the difference between this machine's clock and the API server's clock. Times in pods' annotations are
// in the API server's time, because replicas read each other's times, and their clocks may differ by hours.
type Clock struct {
	start time.Time
	ahead atomic.Int64 // nanoseconds that the API server's clock is ahead
	log   *slog.Logger
}

// NewClock returns a Clock. It assumes equal clocks until the first response from the API server.
func NewClock(log *slog.Logger) *Clock { return &Clock{start: time.Now(), log: log} }

// Now returns this machine's time. It is monotonic, so that a change of the machine's clock has no effect.
func (c *Clock) Now() time.Time { return c.start.Add(time.Since(c.start)) }

// Theirs converts a time from this machine's clock to the API server's clock. The result may be wrong by a second or
// two.
func (c *Clock) Theirs(ours time.Time) time.Time { return ours.Add(time.Duration(c.ahead.Load())) }

// Ours converts a time from the API server's clock to this machine's clock. The zero time stays zero.
func (c *Clock) Ours(theirs time.Time) time.Time {
	if theirs.IsZero() {
		return theirs
	}
	return theirs.Add(-time.Duration(c.ahead.Load()))
}

// tolerance is the clock difference that recordTime ignores. The Date header of a response contains whole seconds,
// and even synchronized clocks differ slightly.
const tolerance = 2 * time.Second

// loggedDifference is the minimum difference between this machine's clock and the API server's clock that is logged.
const loggedDifference = 10 * time.Second

// recordTime updates the difference between the clocks after a response. date is the time on the API server's clock,
// and sent is the time on this machine's clock when the request was sent.
func (c *Clock) recordTime(date, sent time.Time) {
	received := c.Now()
	ahead := time.Duration(c.ahead.Load())
	if date.After(sent.Add(ahead-tolerance)) && date.Before(received.Add(ahead+tolerance)) {
		return // within tolerance
	}
	// Assume that the server read its clock halfway between sent and received. The server truncates the time to a second,
	// so add the mean error of half a second.
	middle := sent.Add(received.Sub(sent) / 2)
	corrected := date.Add(time.Second / 2).Sub(middle)
	c.ahead.Store(int64(corrected))
	if max(corrected, -corrected) >= loggedDifference {
		c.log.Warn("the clocks of this machine and of the Kubernetes API differ: pods go by the latter",
			"seconds_behind", corrected.Seconds())
	}
}

// Listen wraps a transport of a Kubernetes client, and adjusts the clock to the Date header of each response.
func (c *Clock) Listen(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(request *http.Request) (*http.Response, error) {
		sent := c.Now()
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			c.recordTime(date, sent)
		}
		return response, nil
	}}
}
