// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
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
