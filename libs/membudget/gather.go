// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"errors"
	"io"
	"sync"
)

const (
	// pieceBytes is the size of the pieces that a large message is read into.
	pieceBytes = 64 << 10
	// gatherFrom is the size of the smallest message that is.
	gatherFrom = 4 * pieceBytes
)

// pieces are pieces that are not in use.
var pieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}

// gatheredBody reads a large message into pieces before it gives the first byte of it to the decoder. The
// decoder doubles its buffer until the message fits, and keeps it until the message is whole: of many messages
// that arrive at the same time, each would take more than twice its size. Pieces take the message's size, and
// decoding then waits for nothing, so few messages at a time are decoded.
type gatheredBody struct {
	*countedBody
	left   int64 // of the message, which is not gathered yet
	pieces []*[pieceBytes]byte
	// from and to are the bounds of what the pieces have, in bytes from the beginning of the first.
	from, to int
}

// gathered returns a body whose message of so many bytes is gathered if it is large.
func gathered(body *countedBody, message int64) *gatheredBody {
	g := &gatheredBody{countedBody: body}
	if body.ahead != nil && message >= gatherFrom && message <= body.most {
		g.left = message
	}
	return g
}

// Read implements io.Reader.
func (g *gatheredBody) Read(p []byte) (int, error) {
	if g.left > 0 && g.ahead.Len() == 0 {
		if err := g.gather(); err != nil {
			g.free()
			return 0, err
		}
	}
	if g.from == g.to {
		return g.countedBody.Read(p)
	}
	n := copy(p, g.pieces[0][g.from:min(g.to, pieceBytes)])
	if g.from += n; g.from == pieceBytes {
		pieces.Put(g.pieces[0])
		g.pieces, g.from, g.to = g.pieces[1:], 0, g.to-pieceBytes
	}
	if g.from == g.to { // the evaluation needs none of it
		g.free()
	}
	return n, nil
}

// gather reads the message as far as it comes. The decoder finds out if it ends early.
func (g *gatheredBody) gather() error {
	defer func() { g.left = 0 }()
	for g.left > 0 {
		used := g.to % pieceBytes
		if g.to == len(g.pieces)*pieceBytes {
			g.pieces = append(g.pieces, pieces.Get().(*[pieceBytes]byte))
		}
		last := g.pieces[len(g.pieces)-1]
		n, err := g.countedBody.Read(last[used:min(pieceBytes, used+int(min(g.left, pieceBytes)))])
		g.to, g.left = g.to+n, g.left-int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// free gives back what was not read.
func (g *gatheredBody) free() {
	for _, piece := range g.pieces {
		pieces.Put(piece)
	}
	g.pieces, g.from, g.to = nil, 0, 0
}
