// SPDX-License-Identifier: Apache-2.0

// Package pace bounds how long a server waits for a client that sends or reads slowly.
//
// A client may pause for [Grace] in total, and earns waiting time with the bytes that it
// moves: the server waits no longer than Grace and n/[BytesPerSecond] for n bytes. What a server
// keeps in memory for a client is so kept in proportion to what the client delivers or
// reads.
package pace

import "time"

const (
	// Grace is how long a client may pause.
	Grace = 30 * time.Second
	// BytesPerSecond is the least rate of a transfer that goes on: half a megabit per
	// second, which a slow link has.
	BytesPerSecond = 64 << 10
	// pieceBytes is how much is written at a time, so that a client that reads slowly is
	// told from one that does not read. It earns a part of Grace only.
	pieceBytes = 256 << 10
)

// Meter measures one direction of a transfer. It belongs to one goroutine.
type Meter struct {
	interrupt   func()
	alarm       *time.Timer   // runs during a transfer; nil before the first one
	interrupted chan struct{} // of size one: interrupt has returned
	left        time.Duration // to wait for the client
	ended       time.Time     // of the last transfer
	late        bool          // interrupt has been called
}

// New returns a meter. interrupt ends the transfer that is going on; a Meter calls it in
// a goroutine of its own, and only while Do runs.
func New(interrupt func()) *Meter {
	return &Meter{interrupt: interrupt, interrupted: make(chan struct{}, 1), left: Grace}
}

// Do calls transfer, which returns for how many bytes the client earns waiting time. Do
// reports whether the client kept the pace. Otherwise interrupt has returned before Do
// does: it must not end a later transfer on the same connection. After that Do returns
// false at once.
func (m *Meter) Do(transfer func() (earned int)) bool {
	if m.late {
		return false
	}
	start := time.Now()
	if !m.ended.IsZero() {
		m.left = min(Grace, m.left+start.Sub(m.ended)) // the client did not keep the server waiting
	}
	m.start()
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

// start sets the alarm.
func (m *Meter) start() {
	if m.alarm != nil {
		m.alarm.Reset(m.left)
		return
	}
	m.alarm = time.AfterFunc(m.left, func() {
		m.interrupt()
		m.interrupted <- struct{}{}
	})
}

// Write calls write for all of p, piece by piece, and reports whether the client kept the
// pace. It calls write once for an empty p.
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
