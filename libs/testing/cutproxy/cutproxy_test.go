// SPDX-License-Identifier: Apache-2.0

package cutproxy_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/cutproxy"
)

// TestConnectionsEndAlone has a client close one of two connections, and then the proxy break the other one.
func TestConnectionsEndAlone(t *testing.T) {
	p := cutproxy.New(t, startEcho(t))
	kept, closed := connect(t, p), connect(t, p)
	_ = closed.Close()
	for range 100 { // the proxy notices the end of the closed connection meanwhile
		if _, err := kept.Write([]byte("x")); err != nil {
			t.Fatalf("write to the connection that is left: %v", err)
		}
		if _, err := io.ReadFull(kept, make([]byte, 1)); err != nil {
			t.Fatalf("read from the connection that is left: %v", err)
		}
	}
	p.Cut()
	if n, err := kept.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from a connection that was cut", n)
	}
}

func connect(t *testing.T, p *cutproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// startEcho starts a server that returns all bytes, and returns its address.
func startEcho(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	return listener.Addr().String()
}
