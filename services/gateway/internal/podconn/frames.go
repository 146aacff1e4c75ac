// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

const (
	// smallFrameBytes is the size below which an HTTP/2 DATA frame is small. Small frames are limited, because gRPC
	// allocates about 100 bytes for each frame of a message, even for a frame of one byte.
	smallFrameBytes = 256
	// maxSmallFrames is the number of small frames that a pod may send over a new connection. For each call over the
	// connection, the pod may send smallFramesPerCall further small frames.
	maxSmallFrames = 1024
	// smallFramesPerCall is the number of small frames that a pod may send for each call. The server in a function pod
	// sends at most two for an answer.
	smallFramesPerCall = 16
)

// Parts of HTTP/2 frames.
const (
	frameData        = 0
	flagPadded       = 8
	frameHeaderBytes = 9
)

var errSmallFrames = errors.New("the pod answers in too many small frames")

// frameBudget is the number of small frames that a pod may still send. The gateway closes the connection of a pod that
// sends more. Only calls by the gateway increase the budget. Frames from the pod must not increase it, because a
// malicious pod could then send any number of small frames.
type frameBudget struct{ atomic.Int64 }

// addCall increases the budget for the answer to a further call. It does nothing if the budget is at least
// maxSmallFrames. Answers use only a part of their frames, and the unused frames would otherwise accumulate.
func (b *frameBudget) addCall() {
	if b.Load() < maxSmallFrames {
		b.Add(smallFramesPerCall)
	}
}

// frameLimitedCredentials limits the number of small frames that a pod may send over a connection. Without this limit,
// a malicious pod could send its answer in frames of one byte. The gateway would then use thirty times the answer's
// size in memory, and the memory budget would not count this memory.
type frameLimitedCredentials struct {
	credentials.TransportCredentials

	budget *frameBudget
}

// ClientHandshake implements credentials.TransportCredentials. The returned connection limits the number of small
// frames.
func (f frameLimitedCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := f.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return &framedConn{Conn: conn, budget: f.budget}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (f frameLimitedCredentials) Clone() credentials.TransportCredentials {
	return frameLimitedCredentials{f.TransportCredentials.Clone(), f.budget}
}

// framedConn is a connection that fails after too many small frames. It is not safe for concurrent reads.
type framedConn struct {
	net.Conn
	header  [frameHeaderBytes]byte
	read    int // number of bytes in header, which a Read may fill only partly
	payload int // number of bytes of the current frame's payload still to be read
	budget  *frameBudget
}

// Read implements net.Conn.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.countFrames(p[:n]); c.budget.Load() < 0 {
		_ = c.Close()
		return 0, errSmallFrames
	}
	return n, err
}

// countFrames finds the small HTTP/2 frames in the received bytes, and reduces the budget by their number.
func (c *framedConn) countFrames(b []byte) {
	for len(b) > 0 {
		skipped := min(c.payload, len(b))
		c.payload -= skipped
		b = b[skipped:]
		copied := copy(c.header[c.read:], b)
		c.read += copied
		b = b[copied:]
		if c.read < frameHeaderBytes {
			continue
		}
		c.read = 0
		c.payload = int(binary.BigEndian.Uint32(c.header[:4]) >> 8) //nolint:mnd // 24 bits
		kind, flags := c.header[3], c.header[4]
		// Count a padded frame of any size as small, because most of its bytes may be padding instead of data. The server in
		// a function pod never pads frames.
		if kind == frameData && (c.payload < smallFrameBytes || flags&flagPadded != 0) {
			c.budget.Add(-1)
		}
	}
}
