// SPDX-License-Identifier: Apache-2.0

package serve

// Warning: this file and age.go write a frame below net/http, which has no supported way to send a graceful GOAWAY.
// docs/decisions/0036 explains why, and names the test that fails when net/http supports it.

// Constants of the HTTP/2 frame format (RFC 9113, section 4.1).
const (
	frameHeaderBytes  = 9
	frameHeaders      = 0x1
	frameGoAway       = 0x7
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

// frames parses the HTTP/2 frames that a server writes, to find the places where we can insert the GOAWAY frame.
// The zero value is ready for the first byte of a connection.
type frames struct {
	header [frameHeaderBytes]byte
	have   int  // number of bytes in header
	rest   int  // remaining bytes of the frame's content
	begun  bool // true once the first frame, the server's settings, has begun
	open   bool // true if the next frame continues the headers
}

// parseWritten continues to parse after the server has written the bytes p.
func (f *frames) parseWritten(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(p))
			f.rest -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have == frameHeaderBytes {
			f.parseHeader()
		}
	}
}

func (f *frames) parseHeader() {
	f.have, f.begun = 0, true
	f.rest = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	if kind := f.header[3]; kind == frameHeaders || kind == frameContinuation {
		f.open = f.header[4]&flagEndHeaders == 0
	}
}

// atBoundary reports whether another frame may be inserted now: no frame and no sequence of header frames is
// incomplete.
func (f *frames) atBoundary() bool { return f.begun && f.have == 0 && f.rest == 0 && !f.open }
