// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// conn is a connection. One command uses it at a time.
type conn struct {
	net.Conn

	r *bufio.Reader
	w *bufio.Writer
}

func newConn(raw net.Conn) *conn {
	return &conn{Conn: raw, r: bufio.NewReader(raw), w: bufio.NewWriter(raw)}
}

// dial connects to the server and logs in. It reads the files each time, so that they may change.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", c.cfg.Address.HostPort)
	if err != nil {
		return nil, fmt.Errorf("connect to the cache server: %w", err)
	}
	if raw, err = c.secure(ctx, raw); err != nil {
		return nil, err
	}
	made := newConn(raw)
	if err := c.login(ctx, made); err != nil {
		_ = made.Close()
		return nil, err
	}
	return made, nil
}

// secure returns a connection with TLS, unless the address says otherwise.
func (c *Client) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	if c.cfg.Address.Plaintext {
		return raw, nil
	}
	cfg := &tls.Config{ServerName: c.cfg.Address.Host, MinVersion: tls.VersionTLS12}
	var err error
	if cfg.RootCAs, err = authorities(c.cfg.CAFile); err == nil {
		secured := tls.Client(raw, cfg)
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
		err = fmt.Errorf("connect to the cache server by TLS: %w", err)
	}
	_ = raw.Close()
	return nil, err
}

// authorities returns the certificates in a file; nil, which is those of the system, for no file.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // as in tls.Config
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of the cache server: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("read the authorities of the cache server: no certificate in %s", file)
	}
	return pool, nil
}

var errLogin = errors.New("log in to the cache server: it refused the user or the password")

// login authenticates, if there is a password, and chooses the database.
func (c *Client) login(ctx context.Context, made *conn) error {
	if c.cfg.PasswordFile != "" {
		password, err := os.ReadFile(c.cfg.PasswordFile)
		if err != nil {
			return fmt.Errorf("read the password of the cache server: %w", err)
		}
		args := [][]byte{[]byte("AUTH")}
		if c.cfg.Address.User != "" {
			args = append(args, []byte(c.cfg.Address.User))
		}
		_, err = made.do(ctx, 0, append(args, bytes.TrimRight(password, "\r\n"))...)
		if _, ok := errors.AsType[ReplyError](err); ok {
			return errLogin // what the server says may contain the password
		}
		if err != nil {
			return fmt.Errorf("log in to the cache server: %w", err)
		}
	}
	if c.cfg.Address.Database == 0 {
		return nil
	}
	database := strconv.AppendInt(nil, int64(c.cfg.Address.Database), 10)
	if _, err := made.do(ctx, 0, []byte("SELECT"), database); err != nil {
		return fmt.Errorf("choose the database of the cache server: %w", err)
	}
	return nil
}

// do sends a command and returns the value in its reply, of at most limit bytes. After an error that is no
// answer of the server, the connection has to be closed.
func (c *conn) do(ctx context.Context, limit int, args ...[]byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err := writeCommand(c.w, args)
	var value []byte
	if err == nil {
		value, err = readReply(c.r, limit)
	} else {
		err = fmt.Errorf("write to the cache server: %w", err)
	}
	if !stop() && (err == nil || answers(err)) {
		err = errors.New("the cache server's reply came too late")
	}
	return value, err
}
