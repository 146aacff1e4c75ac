// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/http"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// TestNetHTTPStillDropsRequests holds the reason for age.go: for "Connection: close", net/http
// sends a GOAWAY that names the last request that it has seen, and drops later requests that are on
// their way. RFC 9113, section 6.8, wants a GOAWAY that excludes no request first. When this test
// fails, net/http does so: delete what age.go writes and parses, and have it set the header for HTTP/2 too.
func TestNetHTTPStillDropsRequests(t *testing.T) {
	listener := pipenet.Listen()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	conn := dialRaw(t, listener, "/").Conn
	t.Cleanup(func() { _ = conn.Close() })

	const frameGoAway = 0x7
	for r := bufio.NewReader(conn); ; {
		header := make([]byte, 9)
		if _, err := io.ReadFull(r, header); err != nil {
			t.Fatalf("the connection ended without a GOAWAY: %v", err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(header)>>8)
		if _, err := io.ReadFull(r, payload); err != nil {
			t.Fatal(err)
		}
		if header[3] != frameGoAway {
			continue
		}
		if last := binary.BigEndian.Uint32(payload); last != 1 {
			t.Errorf("GOAWAY names request %d as the last, not 1: see the comment of this test", last)
		}
		return
	}
}
