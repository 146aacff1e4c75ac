// SPDX-License-Identifier: Apache-2.0

package cacheserver_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/cacheserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddresses(t *testing.T) {
	for url, want := range map[string]cacheserver.Address{
		"rediss://cache": {Host: "cache", HostPort: "cache:6379"},
		"rediss://fnr@cache.example.com:6380/3": {
			Host: "cache.example.com", HostPort: "cache.example.com:6380", User: "fnr", Database: 3,
		},
		"redis://[::1]:1/": {Plaintext: true, Host: "::1", HostPort: "[::1]:1"},
	} {
		if got, err := cacheserver.ParseAddress(url); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", url, got, err, want)
		}
	}
	for reason, url := range map[string]string{
		"empty": "", "no scheme": "cache:6379", "another scheme": "https://cache", "no host": "rediss://:6379",
		"a password in settings": "rediss://fnr:secret@cache", "a database without a number": "rediss://cache/x",
		"a negative database": "rediss://cache/-1", "a parameter": "rediss://cache?x=1", "no port": "rediss://cache:x",
	} {
		if got, err := cacheserver.ParseAddress(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v, want an error without the URL", reason, got, err)
		}
	}
}

// silent opens a port of loopback where connections wait.
func silent(t *testing.T) (net.Listener, cacheserver.Address) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, cacheserver.Address{Plaintext: true, Host: "127.0.0.1", HostPort: listener.Addr().String()}
}

// scripted starts a server that replies to each connection with a text, whatever it is asked, and no more.
func scripted(t *testing.T, reply string) cacheserver.Address {
	t.Helper()
	listener, address := silent(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, reply)
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return address
}

// TestRepliesAreBounded has servers that reply what no honest one does.
func TestRepliesAreBounded(t *testing.T) {
	for reason, tc := range map[string]struct{ reply, want string }{
		"a value of all memory":     {"$9223372036854775807\r\nx", "reply is not one of the Redis protocol"},
		"a value of four gigabytes": {"$4294967295\r\nx", "a value of 4294967295 bytes, more than the 1000"},
		"a value below zero":        {"$-2\r\n", "reply is not one of the Redis protocol"},
		"a value that never ends":   {"$1000\r\nx", "read a value from the cache server"},
		"a value without its end":   {"$1\r\nxyz", "reply is not one of the Redis protocol"},
		"a line without its end":    {"+" + strings.Repeat("x", 1<<16), "reply is not one of the Redis protocol"},
		"an empty line":             {"\r\n", "reply is not one of the Redis protocol"},
		"an array":                  {"*1000000000\r\n$1\r\n", "reply is not one of the Redis protocol"},
		"a long error":              {"-ERR " + strings.Repeat("x", 4000) + "\r\n", "ERR " + strings.Repeat("x", 100)},
		"nothing":                   {"", "read the cache server's reply"},
	} {
		client := cacheserver.New(cacheserver.Config{
			Address: scripted(t, tc.reply), MaxConnections: 1, MaxValueBytes: 1000,
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		value, err := client.Get(t.Context(), "x")
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
			t.Errorf("%s: %q, %v, want an error with %q", reason, value, err, tc.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %d bytes are allocated for a value of at most 1000", reason, took)
		}
		client.Close()
	}
}

// TestCallersLeave has a caller leave before the server replies.
func TestCallersLeave(t *testing.T) {
	_, address := silent(t)
	client := cacheserver.New(cacheserver.Config{Address: address, MaxConnections: 1, MaxValueBytes: 1000})
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := client.Get(ctx, "x"); err == nil {
		t.Error("a value came from nowhere")
	}
}
