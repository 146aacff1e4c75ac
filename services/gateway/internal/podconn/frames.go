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
	// smallFrameBytes is the size below which a DATA frame counts as small. Small frames are limited because gRPC
	// allocates about 100 bytes for each frame of a message, regardless of the frame's size.
	smallFrameBytes = 256
	// maxSmallFrames is the number of small frames that a pod may send in addition to smallFramesPerCall.
	maxSmallFrames = 1024
	// smallFramesPerCall is the number of small frames that a pod may send for each call. A wrapper server sends at
	// most two small frames per answer.
	smallFramesPerCall = 16
)

// Parts of HTTP/2 frames.
const (
	frameData        = 0
	flagPadded       = 8
	frameHeaderBytes = 9
)

var errSmallFrames = errors.New("the pod answers in too many small frames")

// frameBudget is the number of small frames that a pod may still send. Only calls increase it, because a pod can send
// any other frame as often as it wants.
type frameBudget struct{ atomic.Int64 }

// addCall adds the small frames of a call's answer, unless the pod left most of its budget unused.
func (b *frameBudget) addCall() {
	if b.Load() < maxSmallFrames {
		b.Add(smallFramesPerCall)
	}
}

// frameLimitedCredentials adds a limit of small frames to connections. Otherwise a pod could answer in frames of one
// byte, and such an answer would need thirty times its size in memory, outside of the memory budget.
type frameLimitedCredentials struct {
	credentials.TransportCredentials

	budget *frameBudget
}

// ClientHandshake implements credentials.TransportCredentials.
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

// framedConn is a connection that fails if its peer sends too many small frames. Only one goroutine may call Read.
type framedConn struct {
	net.Conn
	header  [frameHeaderBytes]byte
	read    int // bytes in header: the part of the next frame's header read so far
	payload int // bytes of the current frame's payload still to be read
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

// countFrames parses the next received bytes, b, and counts the small frames in them.
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
		// Padding hides how little data a frame contains, and no server of ours pads frames.
		if kind == frameData && (c.payload < smallFrameBytes || flags&flagPadded != 0) {
			c.budget.Add(-1)
		}
	}
}
