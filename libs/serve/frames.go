// SPDX-License-Identifier: Apache-2.0

package serve

// Warning: this file and age.go write a frame below net/http, which has no supported way to send a
// graceful GOAWAY. docs/decisions/0036 has the reason, and names the test that fails when it can go.

// The parts of HTTP/2 frames that are read (RFC 9113, section 4.1).
const (
	frameHeaderBytes  = 9
	frameHeaders      = 0x1
	frameGoAway       = 0x7
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

// frames parses what a server writes over HTTP/2, to find where another frame may be
// inserted. Its zero value is the beginning of a connection.
type frames struct {
	header [frameHeaderBytes]byte
	have   int  // bytes of the header
	rest   int  // bytes of the frame's content that are still to come
	begun  bool // there was a frame: the first one is the server's settings
	open   bool // the next frame continues the headers of the last
}

// passed records what was written.
func (f *frames) passed(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(p))
			f.rest, p = f.rest-n, p[n:]
			continue
		}
		n := copy(f.header[f.have:], p)
		f.have, p = f.have+n, p[n:]
		if f.have == frameHeaderBytes {
			f.begin()
		}
	}
}

// begin records the header of a frame.
func (f *frames) begin() {
	f.have, f.begun = 0, true
	f.rest = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	if kind := f.header[3]; kind == frameHeaders || kind == frameContinuation {
		f.open = f.header[4]&flagEndHeaders == 0
	}
}

// between reports whether another frame may be inserted now.
func (f *frames) between() bool { return f.begun && f.have == 0 && f.rest == 0 && !f.open }
