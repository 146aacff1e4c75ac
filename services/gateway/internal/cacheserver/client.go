// SPDX-License-Identifier: Apache-2.0

// Package cacheserver is a client of servers that speak the Redis protocol, such as Valkey. It has what a cache
// needs: to get a value, and to set one that expires.
//
// The server is not trusted: the bytes that it sends are bounded before they are read, and each wait ends with its
// context. Client libraries allocate what the server announces.
package cacheserver

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// Config is which server is used, and how.
type Config struct {
	Address Address
	// PasswordFile has the password; empty for none. CAFile has the certificates of the authorities that may have
	// issued the server's; empty for those of the system. Each connection reads both.
	PasswordFile, CAFile string
	// MaxConnections bounds the connections, and so the values that are read at a time.
	MaxConnections int
	// MaxValueBytes bounds a value that is read.
	MaxValueBytes int
}

// ErrBusy means that all connections were in use until the context of a call ended.
var ErrBusy = errors.New("all connections to the cache server are in use")

// Client is a client. Any number of goroutines may use it.
type Client struct {
	cfg   Config
	slots chan struct{}

	mu     sync.Mutex
	idle   []*conn // the one used last is at the end
	closed bool
}

// New returns a client, which connects when it is used. It has to be closed.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, slots: make(chan struct{}, cfg.MaxConnections)}
}

// Get returns the value of a name; nil if there is none.
func (c *Client) Get(ctx context.Context, name string) ([]byte, error) {
	return c.do(ctx, []byte("GET"), []byte(name))
}

// Set sets the value of a name until ttl is over.
func (c *Client) Set(ctx context.Context, name string, value []byte, ttl time.Duration) error {
	_, err := c.do(ctx, []byte("SET"), []byte(name), value, []byte("PX"), strconv.AppendInt(nil, ttl.Milliseconds(), 10))
	return err
}

// Close closes the connections, also those in use as soon as they are not.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closeIdle()
}

// do sends a command on some connection. If one that was idle fails, the others may be as old: it closes them, and
// tries again on a new one, as after a restart of the server. Commands may be repeated. An error that the server
// replied to the command is the answer: the connection works.
func (c *Client) do(ctx context.Context, args ...[]byte) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ErrBusy
	}
	if used := c.takeIdle(); used != nil {
		value, err := c.on(ctx, used, args)
		if err == nil || answers(err) {
			return value, err
		}
		if c.closeIdle(); ctx.Err() != nil {
			return nil, err
		}
	}
	made, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	return c.on(ctx, made, args)
}

// on sends a command on a connection, and keeps the connection if the server replied to the command.
func (c *Client) on(ctx context.Context, used *conn, args [][]byte) ([]byte, error) {
	value, err := used.do(ctx, c.cfg.MaxValueBytes, args...)
	if (err == nil || answers(err)) && c.keep(used) {
		return value, err
	}
	_ = used.Close()
	return value, err
}

// keep makes a connection idle, and reports whether it did: the client may be closed.
func (c *Client) keep(used *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.idle = append(c.idle, used)
	return true
}

// takeIdle returns a connection that was idle; nil if there is none.
func (c *Client) takeIdle() *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	last := len(c.idle) - 1
	used := c.idle[last]
	c.idle[last], c.idle = nil, c.idle[:last]
	return used
}

// closeIdle closes the connections that are not in use.
func (c *Client) closeIdle() {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, one := range idle {
		_ = one.Close()
	}
}
