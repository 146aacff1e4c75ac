// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadConnectionsCostOneCall has idle connections whose server is gone without a word: one call finds out.
func TestDeadConnectionsCostOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{MaxConnections: 4, MaxValueBytes: 100})
		var servers []net.Conn
		for range 3 {
			client, server := net.Pipe()
			servers = append(servers, server)
			c.keep(newConn(client))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if value, err := c.Get(ctx, "x"); err == nil {
			t.Errorf("got %q from a server that is gone", value)
		}
		for i, server := range servers {
			if _, err := io.Copy(io.Discard, server); err != nil {
				t.Errorf("connection %d: %v, want its end", i, err)
			}
		}
		if used := c.takeIdle(); used != nil {
			t.Error("the next call would use a connection as old")
		}
	})
}

// TestErrorRepliesKeepTheConnection has a server refuse a command on one of two idle connections: it still serves
// both, except after replies about the connection itself.
func TestErrorRepliesKeepTheConnection(t *testing.T) {
	for reply, kept := range map[string]int{
		"-OOM command not allowed when used memory > 'maxmemory'": 2, "-NOPERM this user has no permissions": 2,
		"-NOAUTH Authentication required.": 0, "-READONLY You can't write against a read only replica.": 0,
	} {
		c := New(Config{MaxConnections: 4, MaxValueBytes: 100})
		var ended sync.WaitGroup
		var commands atomic.Int32
		for range 2 {
			client, server := net.Pipe()
			c.keep(newConn(client))
			ended.Go(func() {
				defer server.Close()
				for r := bufio.NewReader(server); ; {
					for range 5 { // GET and a name: an array, and two strings with their lengths
						if _, err := r.ReadString('\n'); err != nil {
							return
						}
					}
					commands.Add(1)
					if _, err := io.WriteString(server, reply+"\r\n"); err != nil {
						return
					}
				}
			})
		}
		if _, err := c.Get(t.Context(), "x"); err == nil {
			t.Errorf("%s: no error", reply)
		}
		if len(c.idle) != kept || commands.Load() != 1 {
			t.Errorf("%s: %d connections are kept after %d commands, want %d after one", reply, len(c.idle),
				commands.Load(), kept)
		}
		c.Close()
		ended.Wait()
	}
}

// TestClosedClientsKeepNothing closes a client while a connection is in use.
func TestClosedClientsKeepNothing(t *testing.T) {
	c := New(Config{MaxConnections: 1})
	client, server := net.Pipe()
	defer server.Close()
	c.Close()
	if c.keep(newConn(client)) {
		t.Error("a closed client keeps a connection")
	}
	_ = client.Close()
}
