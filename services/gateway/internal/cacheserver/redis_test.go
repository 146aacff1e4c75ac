// SPDX-License-Identifier: Apache-2.0

//go:build redis

package cacheserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/cacheserver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/cachetest"
)

// connect returns a client of a real server.
func connect(t *testing.T, url string, change func(*cacheserver.Config), server *cachetest.Server) *cacheserver.Client {
	t.Helper()
	address, err := cacheserver.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg := cacheserver.Config{
		Address: address, CAFile: server.CAFile, PasswordFile: server.PasswordFile, MaxConnections: 4, MaxValueBytes: 1 << 20,
	}
	if change != nil {
		change(&cfg)
	}
	client := cacheserver.New(cfg)
	t.Cleanup(client.Close)
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// expect fails the test if a name does not have a value; nil for none.
func expect(t *testing.T, client *cacheserver.Client, name string, want []byte) {
	t.Helper()
	got, err := client.Get(within(t, 10*time.Second), name)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s is %.40q, %v, want %.40q", name, got, err, want)
	}
}

func set(t *testing.T, client *cacheserver.Client, name string, value []byte, ttl time.Duration) {
	t.Helper()
	if err := client.Set(within(t, 10*time.Second), name, value, ttl); err != nil {
		t.Fatal(err)
	}
}

func TestCacheServer(t *testing.T) {
	server := cachetest.Start(t)
	client := connect(t, server.URL, nil, server)
	expect(t, client, "test:unknown", nil)
	large := bytes.Repeat([]byte{0, '\r', '\n', 0xff}, 1<<18)
	for name, value := range map[string][]byte{
		"empty": {}, "small": []byte("x"), "lines": []byte("a\r\nb\r\n$5\r\n"), "large": large,
	} {
		set(t, client, "test:"+name, value, time.Hour)
		expect(t, client, "test:"+name, value)
		expect(t, connect(t, server.Plaintext, nil, server), "test:"+name, value)
	}
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("test:%d/%d", i, j)
				set(t, client, name, []byte(name), time.Hour)
				expect(t, client, name, []byte(name))
			}
		})
	}
	callers.Wait()
}

func TestCacheServerForgets(t *testing.T) {
	server := cachetest.Start(t)
	client := connect(t, server.URL, nil, server)
	set(t, client, "test:short", []byte("x"), 50*time.Millisecond)
	for ctx := within(t, 10*time.Second); ; {
		value, err := client.Get(ctx, "test:short")
		if err != nil {
			t.Fatal(err)
		}
		if value == nil {
			return
		}
	}
}

func TestCacheServerRestarts(t *testing.T) {
	server := cachetest.Start(t)
	client := connect(t, server.URL, nil, server)
	set(t, client, "test:a", []byte("x"), time.Hour)
	server.Restart(t)
	expect(t, client, "test:a", nil)
	server.SetPassword(t, "second")
	server.Restart(t)
	set(t, client, "test:a", []byte("y"), time.Hour)
	expect(t, client, "test:a", []byte("y"))
}

// TestCacheServerHangs has more callers than connections.
func TestCacheServerHangs(t *testing.T) {
	server := cachetest.Start(t)
	client := connect(t, server.URL, nil, server)
	set(t, client, "test:a", []byte("x"), time.Hour)
	server.Hang(t)
	ctx := within(t, 100*time.Millisecond)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if value, err := client.Get(ctx, "test:a"); err == nil {
				t.Errorf("a server that hangs returned %q", value)
			}
		})
	}
	callers.Wait()
	server.Resume(t)
	expect(t, client, "test:a", []byte("x"))
}

func TestCacheServerIsAuthenticated(t *testing.T) {
	server := cachetest.Start(t)
	other := filepath.Join(t.TempDir(), "other.pem")
	cachetest.WriteCertificate(t, other, other+".key")
	wrong := filepath.Join(t.TempDir(), "password")
	for name, tc := range map[string]struct {
		change func(*cacheserver.Config)
		want   string
	}{
		"another authority":        {func(c *cacheserver.Config) { c.CAFile = other }, "certificate"},
		"the system's authorities": {func(c *cacheserver.Config) { c.CAFile = "" }, "certificate"},
		"another name":             {func(c *cacheserver.Config) { c.Address.Host = "other.example" }, "other.example"},
		"no authority":             {func(c *cacheserver.Config) { c.CAFile = server.PasswordFile }, "no certificate in"},
		"no file":                  {func(c *cacheserver.Config) { c.PasswordFile = wrong }, "read the password"},
		"another password":         {func(c *cacheserver.Config) { c.PasswordFile = server.CAFile }, "refused the user"},
		"no password":              {func(c *cacheserver.Config) { c.PasswordFile = "" }, "NOAUTH"},
	} {
		_, err := connect(t, server.URL, tc.change, server).Get(within(t, 10*time.Second), "test:a")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.want)
		}
	}
}

// TestCacheServerRejects has a user do what it may not.
func TestCacheServerRejects(t *testing.T) {
	server := cachetest.Start(t)
	client := connect(t, server.URL, nil, server)
	err := client.Set(within(t, 10*time.Second), "other:a", []byte("x"), time.Hour)
	if reply, ok := errors.AsType[cacheserver.ReplyError](err); !ok || !strings.HasPrefix(string(reply), "NOPERM") {
		t.Errorf("got %v, want the server's error", err)
	}
	set(t, client, "test:a", []byte("x"), time.Hour)
	small := connect(t, server.URL, func(c *cacheserver.Config) { c.MaxValueBytes = 3 }, server)
	set(t, client, "test:a", []byte("four"), time.Hour)
	if _, err := small.Get(within(t, 10*time.Second), "test:a"); err == nil ||
		!strings.Contains(err.Error(), "a value of 4 bytes, more than the 3") {
		t.Errorf("got %v, want the bound", err)
	}
}
