// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Clock knows how far apart the clocks of this machine and of the Kubernetes API are.
// Times in pods' annotations are in that of the API, which all replicas share: a replica also
// reads the expiry of another replica's pods, and the clocks of their nodes may be hours apart.
type Clock struct {
	start time.Time
	ahead atomic.Int64 // the Kubernetes API's, in nanoseconds
	log   *slog.Logger
}

// NewClock returns a clock that assumes no difference until the first answer shows one.
func NewClock(log *slog.Logger) *Clock { return &Clock{start: time.Now(), log: log} }

// Now is this machine's time. It is monotonic: setting the machine's clock does not change it.
func (c *Clock) Now() time.Time { return c.start.Add(time.Since(c.start)) }

// Theirs is a time of this machine in that of the Kubernetes API, a second or so more
// or less.
func (c *Clock) Theirs(ours time.Time) time.Time { return ours.Add(time.Duration(c.ahead.Load())) }

// Ours is a time of the Kubernetes API in that of this machine. Zero is no time.
func (c *Clock) Ours(theirs time.Time) time.Time {
	if theirs.IsZero() {
		return theirs
	}
	return theirs.Add(-time.Duration(c.ahead.Load()))
}

// tolerance is what a time in whole seconds, and a clock that is kept well, may differ.
const tolerance = 2 * time.Second

// loggedDifference is the difference between the clocks from which on it is logged.
const loggedDifference = 10 * time.Second

// recordTime records the server's time from an answer to a request that was sent at a time of this machine.
func (c *Clock) recordTime(date, sent time.Time) {
	received := c.Now()
	ahead := time.Duration(c.ahead.Load())
	if date.After(sent.Add(ahead-tolerance)) && date.Before(received.Add(ahead+tolerance)) {
		return // it may well be right: the answer took its time
	}
	// The server read its clock between sent and received, and truncated it to a second.
	middle := sent.Add(received.Sub(sent) / 2)
	corrected := date.Add(time.Second / 2).Sub(middle)
	c.ahead.Store(int64(corrected))
	if max(corrected, -corrected) >= loggedDifference {
		c.log.Warn("the clocks of this machine and of the Kubernetes API differ: pods go by the latter",
			"seconds_behind", corrected.Seconds())
	}
}

// Listen returns next such that the clock records the times of all answers.
func (c *Clock) Listen(next http.RoundTripper) http.RoundTripper {
	return listener{clock: c, next: next}
}

type listener struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip is that of [http.RoundTripper].
func (l listener) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := l.clock.Now()
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		l.clock.recordTime(date, sent)
	}
	return response, nil
}

// WrappedRoundTripper is what client-go asks for to close idle connections.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.next }
