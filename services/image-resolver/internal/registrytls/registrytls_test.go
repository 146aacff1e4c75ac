// SPDX-License-Identifier: Apache-2.0

package registrytls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
