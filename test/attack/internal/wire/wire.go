// SPDX-License-Identifier: Apache-2.0

// Package wire is an HTTP/2 client for attacks. Unlike common HTTP/2 libraries, it can send slowly and leave answers
// unread. It obeys the server's flow control.
package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Source is the IP address of all attackers. Well-behaved callers have a different address.
const Source = "127.0.0.66"

// Dial connects to a program from the attackers' address.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(Source)}}
	return dialer.DialContext(ctx, "tcp", address)
}

// frameBytes is HTTP/2's default for the maximum size of a frame, in bytes.
const frameBytes = 16 << 10

// Conn is an attacker's HTTP/2 connection. Its methods may be called concurrently.
type Conn struct {
	net.Conn
	framer *http2.Framer

	mu      sync.Mutex
	changed *sync.Cond
	next    uint32
	initial int64            // send window of a new stream
	window  int64            // bytes that may be sent on the connection
	windows map[uint32]int64 // bytes that may be sent on each stream
	failed  error            // error that ended the connection
}

// Open connects to a program. answerBytes is the number of bytes of each answer that the server can send. It is the
// size of the HTTP/2 flow-control window, which this client never enlarges. The connection closes when ctx ends.
func Open(ctx context.Context, address string, answerBytes uint32) (*Conn, error) {
	conn, err := Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		Conn:    conn,
		framer:  http2.NewFramer(conn, conn),
		next:    1,
		initial: 65535,
		window:  65535,
		windows: map[uint32]int64{},
	}
	c.changed = sync.NewCond(&c.mu)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return nil, err
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: answerBytes}); err != nil {
		return nil, err
	}
	go c.readFrames()
	return c, nil
}

// readFrames reads frames until the connection closes. It applies window updates and settings, and answers pings.
func (c *Conn) readFrames() {
	for {
		frame, err := c.framer.ReadFrame()
		c.mu.Lock()
		if err == nil {
			err = c.handleFrame(frame)
		}
		c.failed = err
		c.changed.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *Conn) handleFrame(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.applySettings(f)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		c.enlargeWindow(f.StreamID, int64(f.Increment))
	case *http2.RSTStreamFrame:
		delete(c.windows, f.StreamID)
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server ends the connection: %v", f.ErrCode)
	}
	return nil
}

// applySettings applies the server's initial flow-control window to all streams, and acknowledges the settings.
func (c *Conn) applySettings(settings *http2.SettingsFrame) error {
	if size, ok := settings.Value(http2.SettingInitialWindowSize); ok {
		for id := range c.windows {
			c.windows[id] += int64(size) - c.initial
		}
		c.initial = int64(size)
	}
	return c.framer.WriteSettingsAck()
}

// enlargeWindow adds to the flow-control window of a stream, or of the connection if stream is 0.
func (c *Conn) enlargeWindow(stream uint32, by int64) {
	if stream == 0 {
		c.window += by
	} else if _, open := c.windows[stream]; open {
		c.windows[stream] += by
	}
}

// Request sends the headers of a gRPC call on a new stream, and returns the stream's ID.
func (c *Conn) Request(path string) (stream uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	stream = c.next
	c.next += 2
	c.windows[stream] = c.initial
	block, err := encodeHeaders(path)
	if err != nil {
		return 0, err
	}
	return stream, c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: block, EndHeaders: true,
	})
}

// encodeHeaders returns the HTTP/2 headers of a gRPC call, encoded by HPACK.
func encodeHeaders(path string) ([]byte, error) {
	var block bytes.Buffer
	// Mark all fields as sensitive, so that HPACK does not add them to its compression table. Each header is then
	// independent of earlier headers, and requests can be sent in any order.
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", path},
		{":authority", "attack.test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}); err != nil {
			return nil, err
		}
	}
	return block.Bytes(), nil
}

// Send sends data on a stream, as fast as the server's flow-control windows permit. It returns an error if the server
// closes the stream or the connection before all data is sent.
func (c *Conn) Send(stream uint32, data []byte, end bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(data) > 0 {
		window, open := c.windows[stream]
		n := min(int64(len(data)), frameBytes, c.window, window)
		switch {
		case c.failed != nil:
			return c.failed
		case !open:
			return fmt.Errorf("the server has ended stream %d", stream)
		case n <= 0:
			c.changed.Wait()
			continue
		}
		if err := c.framer.WriteData(stream, end && n == int64(len(data)), data[:n]); err != nil {
			return err
		}
		data = data[n:]
		c.window -= n
		c.windows[stream] = window - n
	}
	return nil
}

// Envelope prefixes a message with gRPC's header, which announces the message's length. The announced length may be
// wrong, to attack a server.
func Envelope(message []byte, compressed bool, announced int) []byte {
	prefix := make([]byte, 5, 5+len(message))
	if compressed {
		prefix[0] = 1
	}
	binary.BigEndian.PutUint32(prefix[1:], uint32(announced))
	return append(prefix, message...)
}
