// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registrytls"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
)

// failing is a network where each connection leads to an address and fails.
type failing struct {
	address string
	err     error
}

func (f failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := dialguard.Check(req.Context(), f.address+":443"); err != nil {
		return nil, err
	}
	if f.err == nil {
		return &http.Response{
			StatusCode: http.StatusNotFound, Header: make(http.Header), Body: http.NoBody, Request: req,
		}, nil
	}
	return nil, f.err
}

// TestCallersCannotScanPrivateNetworks has ports of private addresses that are closed, open, or something else than a
// registry. Unless the registry is listed, callers see one text; the log has the cause.
func TestCallersCannotScanPrivateNetworks(t *testing.T) {
	failures := map[string]error{
		"connection refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"no route to host":   &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"first record does not look like": tls.RecordHeaderError{
			Msg: "first record does not look like a TLS handshake",
		},
		"unknown authority": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"404":               nil,
	}
	texts := map[string]bool{}
	for cause, failure := range failures {
		for _, listed := range []bool{false, true} {
			for _, address := range []string{"10.1.2.3", "203.0.113.1"} {
				w := newWorld(t)
				var log strings.Builder
				tel := *w.Telemetry
				tel.Log = slog.New(slog.NewTextHandler(&log, nil))
				w.Telemetry = &tel
				w.Transport = failing{address, failure}
				if listed {
					w.Local = []string{"registry.example"}
				}
				_, err := w.manifest(t, "registry.example/fn", "v1")
				if err == nil {
					t.Fatalf("no error for %s", cause)
				}
				if listed || address != "10.1.2.3" {
					if !strings.Contains(err.Error(), cause) {
						t.Errorf("listed %t, at %s: %v, want the cause %q", listed, address, err, cause)
					}
					continue
				}
				texts[fault.Of(err).String()+": "+err.Error()] = true
				if !strings.Contains(log.String(), cause) {
					t.Errorf("the log has %q, want the cause %q", log.String(), cause)
				}
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("callers see %v, want one text", texts)
	}
}

// privateConn is a connection to a server at a private address.
type privateConn struct{ net.Conn }

const privateAddress = "10.1.2.3:443"

func (privateConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(privateAddress))
}

// TestReusedConnectionsHidePrivateServers asks a server at a private address twice. The second session uses the
// connection of the first session, and must not tell more about the server.
func TestReusedConnectionsHidePrivateServers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		authority, directory := testcert.NewAuthority(t), t.TempDir()
		testcert.Write(t, directory, "ca.crt", authority.PEM)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "an inner service", http.StatusTeapot)
		}))
		server.TLS = authority.Server(t, time.Now().Add(time.Hour))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		dials := 0
		store, err := registrytls.New(registrytls.Config{
			Directory: directory, Log: slog.New(slog.DiscardHandler),
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				dials++
				if err := dialguard.Check(ctx, privateAddress); err != nil {
					return nil, err
				}
				var d net.Dialer
				conn, err := d.DialContext(ctx, network, server.Listener.Addr().String())
				return privateConn{conn}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		w.Transport = store
		var texts []string
		for _, repository := range []string{"one", "two"} {
			_, err := w.manifest(t, testcert.Name+"/"+repository, "v1")
			if err == nil || strings.Contains(err.Error(), "418") {
				t.Errorf("HTTP/2 %t: %v, want an error that hides the server's answer", http2, err)
				continue
			}
			texts = append(texts, strings.ReplaceAll(err.Error(), repository, "NAME"))
		}
		if len(texts) == 2 && texts[0] != texts[1] {
			t.Errorf("HTTP/2 %t: errors %q differ", http2, texts)
		}
		if http2 && dials != 1 { // a slow client closes connections of HTTP/1.1 instead
			t.Errorf("%d connections, want that the second session uses the first one's", dials)
		}
		closed, cancel := context.WithCancel(t.Context())
		cancel()
		if err := store.Run(closed); err != nil { // closes the idle connection
			t.Error(err)
		}
	}
}
