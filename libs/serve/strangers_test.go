// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// door is an endpoint with up to eight connections, four from a peer, and four of strangers. It admits requests
// for /in.
type door struct {
	*pipes
	dialed int
}

func openDoor(t *testing.T) *door {
	t.Helper()
	return &door{pipes: startPipes(t, serve.Endpoint{
		TLS: new(tls.Config), MaxConnections: 8, MaxConnectionsPerPeer: 4,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/in" && !serve.Admit(r) {
				w.WriteHeader(http.StatusTeapot)
			}
		}),
	})}
}

// dial connects from a host.
func (d *door) dial(t *testing.T, host string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	d.dialed++
	d.conns <- from{server, fmt.Sprintf("%s:%d", host, d.dialed)}
	t.Cleanup(func() { _ = client.Close() })
	synctest.Wait()
	return client
}

// ask asks on a connection, and reports whether there is an answer.
func ask(conn net.Conn, path string) bool {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	synctest.Wait()
	return err == nil
}

// isOpen reports whether a connection without requests is open.
func isOpen(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// TestStrangersMakeWayForOthers closes the oldest connection of the peer that has most, or too many.
func TestStrangersMakeWayForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDoor(t)
		one, two, three := d.dial(t, "10.0.0.1"), d.dial(t, "10.0.0.1"), d.dial(t, "10.0.0.1")
		other := d.dial(t, "10.0.0.2")
		late := d.dial(t, "10.0.0.3")
		if isOpen(one) || !isOpen(two) || !isOpen(three) || !isOpen(other) || !isOpen(late) {
			t.Error("the fifth connection has not closed the oldest of the peer that has most")
		}
		if !ask(late, "/health") || !ask(other, "/in") {
			t.Error("a peer with few connections gets no answer")
		}
		for range 4 {
			d.dial(t, "10.0.0.1")
		}
		if isOpen(two) || isOpen(three) || !ask(late, "/health") || !ask(other, "/in") {
			t.Error("a peer with too many connections has closed those of others")
		}
	})
}

// TestStrangersHaveAShortLife has one of two connections admitted.
func TestStrangersHaveAShortLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDoor(t)
		known, stranger, silent := d.dial(t, "10.0.0.1"), d.dial(t, "10.0.0.1"), d.dial(t, "10.0.0.1")
		if !ask(known, "/in") || !ask(stranger, "/health") {
			t.Error("no answer")
		}
		<-time.After(time.Minute)
		if isOpen(stranger) || isOpen(silent) {
			t.Error("the connection of a stranger is open after a minute")
		}
		if !ask(known, "/in") || !ask(known, "/health") {
			t.Error("the connection of a known client was closed")
		}
	})
}

// TestKnownClientsAreBounded has no more than eight admitted, whatever their number of requests.
func TestKnownClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDoor(t)
		var conns []net.Conn
		for i := range 8 {
			conn := d.dial(t, fmt.Sprintf("10.0.0.%d", i))
			for range 2 {
				if !ask(conn, "/in") {
					t.Errorf("connection %d is not admitted", i)
				}
			}
			conns = append(conns, conn)
		}
		if ask(d.dial(t, "10.0.1.1"), "/in") {
			t.Error("the ninth connection is admitted")
		}
		_ = conns[0].Close()
		synctest.Wait()
		if !ask(d.dial(t, "10.0.1.1"), "/in") {
			t.Error("a connection that was closed still counts")
		}
	})
}
