// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/krm-function-runner/function-runner/test/bed"
)

// front is the private registry behind TLS, with an authority that can be rotated: the bed's own
// registry would have to be restarted for that.
type front struct {
	host        string
	certificate atomic.Pointer[tls.Certificate]
	// authority is the PEM of the current authority.
	authority []byte
}

// newFront serves until the test ends. The node trusts its authority.
func newFront(t *testing.T, of bed.Registry) *front {
	t.Helper()
	target, err := url.Parse(of.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(target.Hostname(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	f := &front{host: listener.Addr().String()}
	f.rotate(t)
	f.configureNode(t)
	server := &http.Server{
		Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }},
		TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate,
			error,
		) {
			return f.certificate.Load(), nil
		}},
		ErrorLog: log.New(t.Output(), "front: ", 0),
	}
	server.SetKeepAlivesEnabled(false) // each request uses the current certificate
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return f
}

// rotate gives the registry a certificate of another authority.
func (f *front) rotate(t *testing.T) {
	t.Helper()
	var certificate tls.Certificate
	certificate, f.authority = issue(t, f.host)
	f.certificate.Store(&certificate)
}

// configureNode configures the current authority on the node, as an administrator does.
func (f *front) configureNode(t *testing.T) {
	t.Helper()
	dir := filepath.Join(s.Bed.RuntimeRegistries, f.host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ca := filepath.Join(dir, "ca.crt")
	hosts := fmt.Sprintf("server = 'https://%[1]s'\n[host.'https://%[1]s']\n  capabilities = ['pull', 'resolve']\n"+
		"  ca = '%[2]s'\n", f.host, ca)
	for path, content := range map[string][]byte{ca: f.authority, filepath.Join(dir, "hosts.toml"): []byte(hosts)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
