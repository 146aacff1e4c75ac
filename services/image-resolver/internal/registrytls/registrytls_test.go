// SPDX-License-Identifier: Apache-2.0

package registrytls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registrytls"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server serves with TLS settings and returns its URL.
func server(t *testing.T, settings *tls.Config) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = settings
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// get asks once, on a connection of its own.
func get(t *testing.T, s *registrytls.Store, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := s.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func open(t *testing.T, cfg registrytls.Config) *registrytls.Store {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := registrytls.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEachRegistryHasItsOwnTrust(t *testing.T) {
	one, two := testcert.NewAuthority(t), testcert.NewAuthority(t)
	general, own := t.TempDir(), t.TempDir()
	testcert.Write(t, general, "ca.crt", one.PEM)
	testcert.Write(t, own, "ca.pem", two.PEM)
	first, second := server(t, one.Server(t, time.Now().Add(time.Hour))), server(t,
		two.Server(t, time.Now().Add(time.Hour)))
	s := open(
		t,
		registrytls.Config{
			Directory:   general,
			Directories: map[string]string{strings.Replace(second, "https://127.0.0.1", "[::FFFF:127.0.0.1]", 1): own},
		},
	)
	for _, url := range []string{first, second} {
		if err := get(t, s, url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := get(t, open(t, registrytls.Config{Directory: general}), second); err == nil {
		t.Error("a registry is trusted by another's authority")
	}
}

func TestOldTLSIsRejected(t *testing.T) {
	authority, directory := testcert.NewAuthority(t), t.TempDir()
	testcert.Write(t, directory, "ca.crt", authority.PEM)
	settings := authority.Server(t, time.Now().Add(time.Hour))
	settings.MinVersion = tls.VersionTLS10
	settings.MaxVersion = tls.VersionTLS11
	if err := get(t, open(t, registrytls.Config{Directory: directory}), server(t, settings)); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

func TestDirectoryChanges(t *testing.T) {
	authority, directory := testcert.NewAuthority(t), t.TempDir()
	url := server(t, authority.Server(t, time.Now().Add(time.Hour)))
	changed := make(chan struct{}, 10)
	s := open(t, registrytls.Config{Directory: directory, Changed: func() { changed <- struct{}{} }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if err := get(t, s, url); err == nil {
		t.Error("trusted without any file")
	}
	testcert.Write(t, directory, "ca.crt", authority.PEM)
	<-changed
	if err := get(t, s, url); err != nil {
		t.Errorf("with the authority: %v", err)
	}
	testcert.Write(t, directory, "tls.crt", []byte("garbage"))
	if err := get(t, s, url); err != nil {
		t.Errorf("after the directory broke: %v, want that the last good files stay in use", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNewRejects(t *testing.T) {
	cert, key := testcert.NewAuthority(t).Issue(t, time.Now().Add(time.Hour))
	_, foreign := testcert.NewAuthority(t).Issue(t, time.Now().Add(time.Hour))
	tests := map[string]struct {
		reason string
		files  map[string][]byte
		says   string
	}{
		"no certificate": {"an empty file is a mistake", map[string][]byte{"ca.crt": nil}, "ca.crt holds no certificate"},
		"no key":         {"a pair is two", map[string][]byte{"tls.crt": cert}, "one exists without the other"},
		"foreign key": {
			"a pair fits together", map[string][]byte{"client.cert": cert, "client.key": foreign}, "private key does not match",
		},
		"swapped": {"it happens", map[string][]byte{"tls.crt": key, "tls.key": cert}, "tls.crt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			for file, content := range tc.files {
				testcert.Write(t, directory, file, content)
			}
			_, err := registrytls.New(registrytls.Config{Directory: directory, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), directory) {
				t.Errorf("%v, want the directory and %q: %s", err, tc.says, tc.reason)
			}
		})
	}
}

func TestRestrictedRequestReachesNoLocalAddress(t *testing.T) {
	authority, directory := testcert.NewAuthority(t), t.TempDir()
	testcert.Write(t, directory, "ca.crt", authority.PEM)
	s := open(t, registrytls.Config{Directory: directory})
	url := strings.Replace(server(t, authority.Server(t, time.Now().Add(time.Hour))), "127.0.0.1", "localhost", 1)
	for name, rejected := range map[string]bool{"unrestricted": false, "lifted": false, "restricted": true} {
		ctx := dialguard.Restrict(t.Context(), dialguard.Restriction{Host: "registry.example", Private: true})
		switch name {
		case "unrestricted":
			ctx = t.Context()
		case "lifted":
			ctx = dialguard.Lift(ctx)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := s.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if _, got := errors.AsType[*dialguard.Error](err); got != rejected || (err == nil) == rejected {
			t.Errorf("%s request to %s: %v, want rejected: %t", name, url, err, rejected)
		}
	}
}

// TestReusedConnectionsAreChecked sends two requests to a host while the first request's connection is idle. The second
// request must not reach the host's address.
func TestReusedConnectionsAreChecked(t *testing.T) {
	local := dialguard.Restriction{Host: "localhost", Private: true}
	public := dialguard.Restriction{Host: "localhost"}
	tests := map[string]struct {
		address string
		first   func(context.Context) context.Context
		second  dialguard.Restriction
	}{
		"local address, no local addresses":     {"127.0.0.1", dialguard.Lift, local},
		"local address, only public addresses":  {"127.0.0.1", dialguard.Lift, public},
		"private address, after no restriction": {"10.1.2.3", dialguard.Lift, public},
		"private address, after a request that may connect to it": {
			"10.1.2.3", func(ctx context.Context) context.Context { return dialguard.Restrict(ctx, local) }, public,
		},
	}
	for name, tc := range tests {
		for _, http2 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				authority, directory := testcert.NewAuthority(t), t.TempDir()
				testcert.Write(t, directory, "ca.crt", authority.PEM)
				var requests atomic.Int32
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
					requests.Add(1)
					if (req.ProtoMajor == 2) != http2 {
						t.Errorf("%s, want HTTP/2: %t", req.Proto, http2)
					}
				}))
				server.TLS = authority.Server(t, time.Now().Add(time.Hour))
				server.EnableHTTP2 = http2
				server.StartTLS()
				defer server.Close()
				dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
					if err := dialguard.Check(ctx, net.JoinHostPort(tc.address, "443")); err != nil {
						return nil, err
					}
					var d net.Dialer
					return d.DialContext(ctx, network, server.Listener.Addr().String())
				}
				s := open(t, registrytls.Config{Directory: directory, Dial: dial})
				defer closeIdle(t, s)
				if err := getAndReuse(tc.first(t.Context()), s); err != nil {
					t.Fatal(err)
				}
				err := getAndReuse(dialguard.Restrict(t.Context(), tc.second), s)
				if _, ok := errors.AsType[*dialguard.Error](err); !ok || requests.Load() != 1 {
					t.Errorf("second request: %v, and the server received %d requests, want an error of dialguard and 1",
						err, requests.Load())
				}
			})
		}
	}
}

// closeIdle closes the store's idle connections.
func closeIdle(t *testing.T, s *registrytls.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

// getAndReuse sends a request and reads the answer, so that the next request can use the same connection.
func getAndReuse(ctx context.Context, s *registrytls.Store) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost/", nil)
	if err != nil {
		return err
	}
	resp, err := s.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
