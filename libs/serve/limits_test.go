// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/slowclient"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// Frames of HTTP/2 (RFC 9113, section 6), as raw clients send and read them.
const (
	frameHeaders  = 0x1
	framePriority = 0x2
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameWindow   = 0x8

	settingStreams = 0x3
	settingWindow  = 0x4

	initialWindow = 64<<10 - 1 // of a connection, in HTTP/2
)

func rawFrame(kind, flags byte, stream uint32, payload []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	f = binary.BigEndian.AppendUint32(append(f, flags), stream)
	return append(f, payload...)
}

// rawClient is a client of HTTP/2 that asks once and never opens its window.
type rawClient struct {
	net.Conn
	sent     chan struct{}      // closed when the request is sent
	reset    chan time.Duration // after which the server reset the stream
	settings chan map[uint16]uint32
	enlarged chan uint32 // bytes by which the server first enlarges the connection's window
}

// dialRaw connects, and sends a request on stream 1.
func dialRaw(t *testing.T, listener *pipenet.Pipes, path string) *rawClient {
	t.Helper()
	conn, err := listener.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c := &rawClient{
		Conn:     conn,
		sent:     make(chan struct{}),
		reset:    make(chan time.Duration, 1),
		settings: make(chan map[uint16]uint32, 1),
		enlarged: make(chan uint32, 1),
	}
	window := []byte{0, settingWindow, 0, 0, 0, 0}
	headers := []byte{0x82, 0x86, 0x41, 1, 'x', 0x04, byte(len(path))} // GET, http, authority and path
	headers = append(headers, path...)
	go func() {
		_, _ = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		_, _ = conn.Write(rawFrame(frameSettings, 0, 0, window))
		_, _ = conn.Write(rawFrame(frameHeaders, 0x5, 1, headers))
		close(c.sent)
	}()
	return c
}

// read reads frames until the connection ends, and answers pings if it is to.
func (c *rawClient) read(pong bool) {
	begin := time.Now()
	for r := bufio.NewReader(c); ; {
		header := make([]byte, 9)
		if _, err := io.ReadFull(r, header); err != nil {
			close(c.reset)
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(header)>>8)
		if _, err := io.ReadFull(r, payload); err != nil {
			close(c.reset)
			return
		}
		switch kind, flags := header[3], header[4]; {
		case kind == framePing && flags == 0 && pong:
			go func() { _, _ = c.Write(rawFrame(framePing, 1, 0, payload)) }()
		case kind == frameReset:
			c.reset <- time.Since(begin)
		case kind == frameWindow && binary.BigEndian.Uint32(header[5:]) == 0:
			c.enlarged <- binary.BigEndian.Uint32(payload)
		case kind == frameSettings && flags == 0:
			settings := make(map[uint16]uint32)
			for ; len(payload) > 0; payload = payload[6:] {
				settings[binary.BigEndian.Uint16(payload)] = binary.BigEndian.Uint32(payload[2:])
			}
			c.settings <- settings
		}
	}
}

// startPipes serves handler on pipes until the test ends. It belongs into a bubble.
func startPipes(t *testing.T, e serve.Endpoint) *pipenet.Pipes {
	t.Helper()
	listener := pipenet.Listen()
	e.Name = "test"
	e.Listener = listener
	p := start(t, serve.Config{ShutdownTimeout: time.Second}, serve.Component{Endpoints: []serve.Endpoint{e}})
	t.Cleanup(func() { p.stop(); <-p.ended })
	synctest.Wait()
	return listener
}

// TestResponsesHaveToBeRead has a client that keeps its connection alive and the window of
// its stream closed.
func TestResponsesHaveToBeRead(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    time.Duration // until the stream is reset
		fails   bool          // the handler's last write
		reason  string
	}{
		"large": {func(w http.ResponseWriter, r *http.Request) {
			write(r, w, 1<<20)
		}, slowclient.Grace, true, "the handler waits in its write"},
		"small": {func(w http.ResponseWriter, r *http.Request) {
			write(r, w, 100)
		}, slowclient.Grace, false, "the handler has returned"},
		"stream": {func(w http.ResponseWriter, r *http.Request) {
			write(r, w, 100)
			_ = http.NewResponseController(w).Flush()
			write(r, w, 100)
		}, slowclient.Grace, true, "the handler waits in its flush"},
		"idle stream": {func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-time.After(time.Hour)
			write(r, w, 100)
		}, time.Hour + slowclient.Grace, false, "time in which nothing is written does not count"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := make(chan error, 2)
				listener := startPipes(t, serve.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tc.handler(w, r.WithContext(context.WithValue(r.Context(), failedKey{}, failed)))
				})})
				c := dialRaw(t, listener, "/")
				defer func() { _ = c.Close() }()
				go c.read(true)
				if took := <-c.reset; took != tc.want {
					t.Errorf("the stream is reset after %v, want %v: %s", took, tc.want, tc.reason)
				}
				synctest.Wait()
				if got := len(failed) > 0; got != tc.fails {
					t.Errorf("a write failed: %v, want %v: %s", got, tc.fails, tc.reason)
				}
			})
		})
	}
}

// failedKey is the key of a channel for the errors of write.
type failedKey struct{}

func write(r *http.Request, w io.Writer, size int) {
	if _, err := w.Write(make([]byte, size)); err != nil {
		r.Context().Value(failedKey{}).(chan error) <- err
	}
}

// TestConnectionsHaveToBeRead has clients that read nothing at all.
func TestConnectionsHaveToBeRead(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				listener := startPipes(t, serve.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					for r.Context().Err() == nil {
						if _, err := w.Write(make([]byte, 1<<20)); err != nil {
							return
						}
					}
				})})
				begin := time.Now()
				c := stuck(t, listener, h2)
				<-ended
				if took := time.Since(begin); took > 2*slowclient.Grace {
					t.Errorf("the request ends after %v", took)
				}
				_ = c.Close()
				<-time.After(time.Minute) // for the client's last write
			})
		})
	}
}

// stuck returns a connection with a request whose client reads no byte of the answer. With
// HTTP/2 it keeps sending, so that pings do not find it.
func stuck(t *testing.T, listener *pipenet.Pipes, h2 bool) net.Conn {
	t.Helper()
	if !h2 {
		conn, err := listener.DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) }()
		return conn
	}
	c := dialRaw(t, listener, "/")
	go func() {
		<-c.sent
		for err := error(nil); err == nil; <-time.After(10 * time.Second) {
			_, err = c.Write(rawFrame(framePriority, 0, 3, make([]byte, 5)))
		}
	}()
	return c.Conn
}

// TestClientsThatVanishAreNoticed has one that sends nothing any more, not even answers to
// pings.
func TestClientsThatVanishAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		listener := startPipes(t, serve.Endpoint{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(ended)
		})})
		c := dialRaw(t, listener, "/")
		defer func() { _ = c.Close() }()
		go c.read(false)
		select {
		case <-ended:
		case <-time.After(time.Hour):
			t.Error("the request goes on for its client")
		}
	})
}

// TestHeadersHaveToCome has a client that stops in the middle of a request's headers.
func TestHeadersHaveToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := startPipes(t, serve.Endpoint{Handler: http.NotFoundHandler()})
		conn, err := listener.DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost:")); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("the connection stays open: %v", err)
		}
	})
}

func TestHeadersAreBounded(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for size, want := range map[int]int{8 << 10: http.StatusNotFound, 40 << 10: http.StatusRequestHeaderFieldsTooLarge} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, size), func(t *testing.T) {
				listener := servetest.Listen(t)
				p := start(t, serve.Config{ShutdownTimeout: time.Minute}, serve.Component{
					Endpoints: []serve.Endpoint{{Name: "test", Listener: listener, Handler: http.NotFoundHandler()}},
				})
				c, transport := client(h2)
				defer func() { transport.CloseIdleConnections(); p.stop(); <-p.ended }()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Token", strings.Repeat("a", size))
				resp, err := c.Do(req)
				if h2 && want == http.StatusRequestHeaderFieldsTooLarge && err != nil {
					return // the client knows the limit
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				if resp.StatusCode != want {
					t.Errorf("status %s, want %d", resp.Status, want)
				}
			})
		}
	}
}

// TestStreamsAreBounded also has the windows of wrapper servers, in case net/http replaces windows by its defaults.
func TestStreamsAreBounded(t *testing.T) {
	largest := serve.Windows{Request: 4 * serve.ReceiveWindow, Connection: serve.MaxWindow}
	for name, tc := range map[string]struct {
		set, want int
		windows   serve.Windows
		wants     serve.Windows
	}{
		"default": {0, serve.DefaultMaxStreams, serve.Windows{}, serve.DefaultWindows},
		"set":     {1000, 1000, largest, largest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := startPipes(t, serve.Endpoint{
					Handler: http.NotFoundHandler(), MaxStreams: tc.set, Windows: tc.windows,
				})
				c := dialRaw(t, listener, "/")
				defer func() { _ = c.Close() }()
				go c.read(true)
				settings := <-c.settings
				if got := settings[settingStreams]; int(got) != tc.want {
					t.Errorf("%d streams on a connection, want %d", got, tc.want)
				}
				windows := serve.Windows{Request: int(settings[settingWindow]), Connection: initialWindow + int(<-c.enlarged)}
				if windows != tc.wants {
					t.Errorf("the windows have %+v bytes, want %+v", windows, tc.wants)
				}
			})
		})
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr { return f }
func (f from) Network() string      { return "tcp" }
func (f from) String() string       { return f.address }

// door is an endpoint with up to eight connections, four from a peer. Requests for /long last until the test ends.
type door struct {
	*pipenet.Pipes
	dialed int
}

func openDoor(t *testing.T) *door {
	t.Helper()
	return &door{Pipes: startPipes(t, serve.Endpoint{
		MaxConnections: 8, MaxConnectionsPerPeer: 4, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/long" || r.URL.Path == healthPath {
				<-r.Context().Done()
			}
		}),
	})}
}

const healthPath = "/grpc.health.v1.Health/Check"

// dial connects from a host.
func (d *door) dial(t *testing.T, host string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	d.dialed++
	d.Conns <- from{server, fmt.Sprintf("%s:%d", host, d.dialed)}
	t.Cleanup(func() { _ = client.Close() })
	<-time.After(time.Millisecond) // connections differ in age
	synctest.Wait()
	return client
}

// send sends a request.
func send(conn net.Conn, path string) error {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"))
	return err
}

// ask asks on a connection, and reports whether there is an answer.
func ask(conn net.Conn) bool {
	if send(conn, "/") != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	synctest.Wait()
	return err == nil
}

// isOpen reports whether a connection without an answer is open.
func isOpen(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(time.Microsecond))
	_, err := conn.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// TestRequestsOfAnAddressAreBounded has clients with requests that do not end, whose number is bounded for an address
// and in total. Health checks of other addresses are still answered, because the process would be restarted.
func TestRequestsOfAnAddressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perPeer = 8 // with one stream per connection
		d := &door{Pipes: startPipes(t, serve.Endpoint{
			MaxConnections: 100, MaxConnectionsPerPeer: 50, MaxStreams: 1,
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/long" {
					<-r.Context().Done()
				}
			}),
		})}
		checkStatus := func(host, path string, want int) {
			t.Helper()
			if got := status(d.dial(t, host), path); got != want {
				t.Errorf("a request for %s from %s is answered with status %d, want %d", path, host, got, want)
			}
		}
		var long []net.Conn
		fill := func(host string) {
			for range perPeer {
				conn := d.dial(t, host)
				if err := send(conn, "/long"); err != nil {
					t.Fatal(err)
				}
				long = append(long, conn)
			}
			synctest.Wait()
		}
		fill("10.0.0.1")
		checkStatus("10.0.0.1", "/", http.StatusTooManyRequests)
		checkStatus("10.0.0.1", healthPath, http.StatusTooManyRequests)
		checkStatus("10.0.0.2", "/", http.StatusOK)
		for i := range 3 {
			fill(fmt.Sprintf("10.0.1.%d", i))
		}
		checkStatus("10.0.0.2", "/", http.StatusTooManyRequests)
		checkStatus("10.0.0.2", healthPath, http.StatusOK)
		_ = long[0].Close()
		synctest.Wait()
		checkStatus("10.0.0.1", "/", http.StatusOK)
	})
}

// status returns the status of the answer to a request, or 0 if there is no answer.
func status(conn net.Conn, path string) int {
	if send(conn, path) != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	synctest.Wait()
	return resp.StatusCode
}

// TestUnreadAnswersCountAsRequests has clients that do not read a small answer, whose handler has returned.
func TestUnreadAnswersCountAsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := startPipes(t, serve.Endpoint{
			MaxStreams: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "small")
			}),
		})
		for range 8 {
			c := dialRaw(t, listener, "/")
			defer func() { _ = c.Close() }()
			go c.read(true)
		}
		synctest.Wait()
		for _, want := range []int{http.StatusTooManyRequests, http.StatusOK} {
			conn, err := listener.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if got := status(conn, "/"); got != want {
				t.Errorf("another request is answered with status %d, want %d", got, want)
			}
			_ = conn.Close()
			<-time.After(slowclient.Grace) // then the answers are given up
			synctest.Wait()
		}
	})
}

// TestIdleConnectionsGiveWay has attackers from two addresses with as many connections as an endpoint has: without a
// request, and with one that was answered.
func TestIdleConnectionsGiveWay(t *testing.T) {
	for name, used := range map[string]bool{"without a request": false, "with former requests": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openDoor(t)
				var idle []net.Conn
				for i := range 8 {
					conn := d.dial(t, fmt.Sprintf("10.0.0.%d", i%2))
					if used && !ask(conn) {
						t.Fatal("no answer")
					}
					idle = append(idle, conn)
				}
				for i := range 3 { // a caller has its answer at once
					if !ask(d.dial(t, fmt.Sprintf("10.0.1.%d", i))) {
						t.Errorf("caller %d gets no answer", i)
					}
				}
				for i, conn := range idle {
					if got, want := isOpen(conn), i >= 3; got != want {
						t.Errorf("idle connection %d is open: %v, want %v: the oldest go", i, got, want)
					}
				}
			})
		})
	}
}

// TestConnectionsInUseStay has connections with requests, whose number is bounded in total and for a peer.
func TestConnectionsInUseStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDoor(t)
		var conns []net.Conn
		for i, want := range []struct {
			host   string
			open   bool
			reason string
		}{
			{"10.0.0.1", true, "the first"},
			{"10.0.0.1", true, ""},
			{"10.0.0.1", true, ""},
			{"10.0.0.1", true, "the fourth of four"},
			{"10.0.0.1", false, "one more than a peer may have"},
			{"10.0.0.2", true, "another peer"},
			{"10.0.0.2", true, ""},
			{"10.0.0.3", true, ""},
			{"10.0.0.3", true, "the eighth of eight"},
			{"10.0.0.2", false, "one more than the endpoint may have"},
			{"10.0.0.4", false, "likewise"},
		} {
			conn := d.dial(t, want.host)
			err := send(conn, "/long")
			synctest.Wait()
			if got := err == nil && isOpen(conn); got != want.open {
				t.Errorf("connection %d from %s is open: %v, want %v: %s", i, want.host, got, want.open, want.reason)
			}
			conns = append(conns, conn)
		}
		_ = conns[0].Close()
		synctest.Wait()
		if !ask(d.dial(t, "10.0.0.1")) {
			t.Error("a connection that was closed still counts")
		}
		if !isOpen(conns[1]) || !isOpen(conns[8]) {
			t.Error("a connection with a request was closed for another one")
		}
	})
}

// TestHealthChecksReserveNoConnection has attackers who fill an endpoint with health checks that never end, which need
// no certificate. The connections of callers stay, and new ones are accepted.
func TestHealthChecksReserveNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDoor(t)
		caller := d.dial(t, "10.0.1.1")
		if !ask(caller) {
			t.Fatal("no answer")
		}
		for i := range 12 {
			_ = send(d.dial(t, fmt.Sprintf("10.0.0.%d", i%3)), healthPath)
			synctest.Wait()
		}
		if !ask(caller) {
			t.Error("the idle connection of a caller was closed for health checks")
		}
		if !ask(d.dial(t, "10.0.1.2")) {
			t.Error("a new caller was refused")
		}
	})
}
