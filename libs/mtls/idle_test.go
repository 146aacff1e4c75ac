// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

// TestIdleConnectionsKeepNoCallerOut has four peers with as many connections as they may have: some with TLS and
// without a certificate, some that send nothing.
func TestIdleConnectionsKeepNoCallerOut(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	address := start(t, authority.Identity(t, server))
	for peer := range 4 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+peer))}}
		for i := range serve.DefaultMaxConnectionsPerPeer {
			if err := hold(t, &dialer, address, i%8 == 0); err != nil && i == 0 {
				t.Fatal(err)
			}
		}
	}
	known := dial(t, "https://"+address, authority.Identity(t, caller).ClientOfSibling("server"))
	for range 3 {
		if err := known.call(t.Context()); err != nil {
			t.Errorf("a caller has no connection: %v", err)
		}
	}
}

// hold keeps a connection open until the test ends.
func hold(t *testing.T, dialer *net.Dialer, address string, secure bool) error {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return fmt.Errorf("connect as a stranger: %w", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if !secure {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stranger := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	return stranger.HandshakeContext(ctx)
}
