// SPDX-License-Identifier: Apache-2.0

// Package slowclient limits how long a server waits for a client that sends or reads slowly.
//
// A client may pause for [Grace] in total, and earns further time by each byte that it sends or reads: the server
// waits for n bytes for at most Grace plus n/[BytesPerSecond]. Therefore a client cannot occupy the server's memory
// for long without transferring many bytes.
package slowclient

import "time"

const (
	// Grace is the total time for which a client may pause.
	Grace = 30 * time.Second
	// BytesPerSecond is the minimum rate of a continuous transfer. It is half a megabit per second, which even slow
	// links achieve.
	BytesPerSecond = 64 << 10
	// pieceBytes is the maximum size of a single write. It is small enough to distinguish a client that reads slowly
	// from a client that does not read, and one piece earns only a part of Grace.
	pieceBytes = 256 << 10
)

// Meter measures one direction of a transfer. Only one goroutine may use it.
type Meter struct {
	interrupt   func()
	alarm       *time.Timer   // runs during a transfer; nil before the first transfer
	interrupted chan struct{} // receives a value when interrupt has returned; of size one
	left        time.Duration // time for which the client may still pause
	ended       time.Time     // end of the last transfer
	late        bool          // true if interrupt was called
}

// New returns a meter. The function interrupt must end the current transfer. The Meter calls it in another goroutine,
// and only while Do runs.
func New(interrupt func()) *Meter {
	return &Meter{interrupt: interrupt, interrupted: make(chan struct{}, 1), left: Grace}
}

// Do calls transfer, which returns the number of bytes that earn time for the client. Do returns true if the client
// kept the pace. If not, Do calls interrupt and returns false after interrupt has returned, because interrupt must
// not end a later transfer on the same connection. All later calls of Do return false immediately.
func (m *Meter) Do(transfer func() (earned int)) bool {
	if m.late {
		return false
	}
	start := time.Now()
	if !m.ended.IsZero() {
		m.left = min(Grace, m.left+start.Sub(m.ended)) // the client did not delay the server
	}
	m.startAlarm()
	earned := transfer()
	if !m.alarm.Stop() {
		<-m.interrupted
		m.late = true
		return false
	}
	m.ended = time.Now()
	m.left = min(Grace, m.left-m.ended.Sub(start)+time.Duration(earned)*time.Second/BytesPerSecond)
	return true
}

func (m *Meter) startAlarm() {
	if m.alarm != nil {
		m.alarm.Reset(m.left)
		return
	}
	m.alarm = time.AfterFunc(m.left, func() {
		m.interrupt()
		m.interrupted <- struct{}{}
	})
}

// Write calls write for all of p, piece by piece, and reports whether the client kept the pace. It calls write once if
// p is empty.
func (m *Meter) Write(write func([]byte) (int, error), p []byte) (n int, inTime bool, err error) {
	for {
		piece := p[n:min(len(p), n+pieceBytes)]
		written := 0
		inTime = m.Do(func() int {
			written, err = write(piece)
			return written
		})
		n += written
		if !inTime || err != nil || n == len(p) {
			return n, inTime, err
		}
	}
}
