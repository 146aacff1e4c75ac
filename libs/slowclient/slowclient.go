// SPDX-License-Identifier: Apache-2.0

// Package slowclient limits the time that a server waits for a client that sends or reads slowly. The limit for n bytes
// is [Grace] plus n/[BytesPerSecond]. The limit grows only with transferred bytes. A client that stops transferring
// data can therefore occupy the server's memory only for a short time.
package slowclient

import "time"

const (
	// Grace is the total time that a client may pause without transferring data.
	Grace = 30 * time.Second
	// BytesPerSecond is the minimum rate of a client that transfers data continuously. Even slow links achieve this
	// rate of half a megabit per second.
	BytesPerSecond = 64 << 10
	// pieceBytes is the maximum size of a single write. At the minimum rate, a client reads a piece in 4 seconds, well
	// within the 30 seconds of Grace. A Meter can therefore distinguish a slow client from a client that does not read at
	// all.
	pieceBytes = 256 << 10
)

// Meter detects a client that is too slow in one direction of a connection. Only one goroutine may use it.
type Meter struct {
	interrupt   func()
	alarm       *time.Timer   // runs during a transfer; nil before the first transfer
	interrupted chan struct{} // receives a value when interrupt has returned; capacity 1
	left        time.Duration // remaining time that the client may pause
	ended       time.Time     // time when the last transfer ended
	late        bool          // true if interrupt was called
}

// New returns a Meter that calls the function interrupt when the client is too slow. The function interrupt must abort
// the transfer that Do has started. The Meter calls it in another goroutine, and only while Do runs.
func New(interrupt func()) *Meter {
	return &Meter{interrupt: interrupt, interrupted: make(chan struct{}, 1), left: Grace}
}

// Do calls transfer and reports whether the client was fast enough. The function transfer returns the number of bytes
// for which the client gets more time. If the client is too slow, Do calls interrupt, waits until interrupt has
// returned, and returns false. Without the wait, interrupt could end a later transfer on the same connection. Later
// calls of Do return false immediately.
func (m *Meter) Do(transfer func() (earned int)) bool {
	if m.late {
		return false
	}
	start := time.Now()
	if !m.ended.IsZero() {
		m.left = min(Grace, m.left+start.Sub(m.ended)) // time between transfers is not the client's fault
	}
	if m.alarm == nil {
		m.alarm = time.AfterFunc(m.left, func() {
			m.interrupt()
			m.interrupted <- struct{}{}
		})
	} else {
		m.alarm.Reset(m.left)
	}
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

// Write writes p in pieces with the function write, so that Do can measure each piece. The result inTime is false if
// the client was too slow. If p is empty, Write calls write once.
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
