// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"context"
	"io"
	"net"
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
