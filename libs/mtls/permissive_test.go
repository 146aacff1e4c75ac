// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// openPermissive returns a permissive identity.
func openPermissive(t testing.TB, authority *mtlstest.Authority, id string, tel *telemetry.Telemetry) *mtls.Identity {
	t.Helper()
	dir := t.TempDir()
	authority.Write(t, dir, id, time.Hour)
	identity, err := mtls.Open(mtls.Config{Directory: dir, Permissive: true}, tel.Log, tel.Meters)
	if err != nil {
		t.Fatal(err)
	}
	servetest.Go(t, identity.Run)
	return identity
}

// programOf returns a client of echo with the settings of a rollout.
func programOf(t testing.TB, url string, secure *tls.Config, permissive bool) client {
	t.Helper()
	return observedOf(t, url, secure, permissive, telemetry.Discard())
}

func observedOf(t testing.TB, url string, secure *tls.Config, permissive bool, tel *telemetry.Telemetry) client {
	t.Helper()
	c, err := rpcclient.New(url, secure, tel, rpcclient.OrPlaintext(permissive))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return client{FunctionEvaluatorClient: evaluatorconnect.NewFunctionEvaluatorClient(c.HTTP, url, c.Options...)}
}

// TestPermissivePrograms has programs of the three steps of a rollout call each other: plaintext, permissive
// and strict. Only neighbours run at a time, and all of these get answers.
func TestPermissivePrograms(t *testing.T) {
	authority, foreign := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	tel, scrape := scrapetest.New(t)
	servers := map[string]string{
		"plaintext":  start(t, nil),
		"permissive": start(t, openPermissive(t, authority, server, tel)),
		"strict":     start(t, authority.Identity(t, server)),
		"foreign":    start(t, openPermissive(t, foreign, server, telemetry.Discard())),
	}
	secure := authority.Identity(t, caller).Client(patterns(t, server))
	wrong := authority.Identity(t, "spiffe://td/fn").Client(patterns(t, server))
	clients := map[string]func(address string) client{
		"plaintext":  func(address string) client { return programOf(t, "http://"+address, nil, false) },
		"permissive": func(address string) client { return programOf(t, "https://"+address, secure, true) },
		"strict":     func(address string) client { return programOf(t, "https://"+address, secure, false) },
		"wrong":      func(address string) client { return programOf(t, "https://"+address, wrong, true) },
	}
	const none = connect.Code(0)
	for _, tc := range []struct {
		client, server string
		want           connect.Code
	}{
		{"plaintext", "plaintext", none},
		{"plaintext", "permissive", none},
		{"permissive", "plaintext", none},
		{"permissive", "permissive", none},
		{"permissive", "strict", none},
		{"strict", "permissive", none},
		{"strict", "strict", none},
		{"plaintext", "strict", connect.CodeUnauthenticated},
		{"strict", "plaintext", connect.CodeUnavailable},
		{"wrong", "permissive", connect.CodePermissionDenied}, // what it proves is wrong
		{"permissive", "foreign", connect.CodeUnavailable},    // TLS that fails is no reason for plaintext
	} {
		if err := clients[tc.client](servers[tc.server]).call(t.Context()); code(err) != tc.want {
			t.Errorf("%s client of a %s server: %v, want %v", tc.client, tc.server, err, tc.want)
		}
	}
	if want := "fn_tls_anonymous_requests_total 1\n"; !strings.Contains(withoutLabels(scrape()), want) {
		t.Errorf("no %q in:\n%s", want, scrape())
	}
}

// withoutLabels removes the labels of a scrape's metrics.
func withoutLabels(scrape string) string {
	var lines []string
	for line := range strings.Lines(scrape) {
		name, rest, found := strings.Cut(line, "{")
		if _, value, ok := strings.Cut(rest, "}"); found && ok {
			line = name + value
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// TestPermissiveConnectionsAreSecure checks that permissive programs prefer TLS: nothing is counted.
func TestPermissiveConnectionsAreSecure(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	tel, scrape := scrapetest.New(t)
	address := start(t, openPermissive(t, authority, server, tel))
	client := openPermissive(t, authority, caller, telemetry.Discard())
	c := programOf(t, "https://"+address, client.Client(patterns(t, server)), true)
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	var callers sync.WaitGroup
	var calls atomic.Int64
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if err := c.call(t.Context()); err != nil {
					t.Error(err)
				}
				calls.Add(1)
			}
		})
	}
	callers.Wait()
	if calls.Load() == 0 || strings.Contains(withoutLabels(scrape()), "\nfn_tls_anonymous_requests_total ") {
		t.Errorf("%d calls, of which some without TLS:\n%s", calls.Load(), scrape())
	}
}

// TestRequestsWithoutTLSAreCounted has a permissive client, whose server does not know TLS or does.
func TestRequestsWithoutTLSAreCounted(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	secure := authority.Identity(t, caller).Client(patterns(t, server))
	for name, tc := range map[string]struct {
		address string
		want    bool
	}{
		"plaintext": {start(t, nil), true}, "TLS": {start(t, authority.Identity(t, server)), false},
	} {
		tel, scrape := scrapetest.New(t)
		c := observedOf(t, "https://"+tc.address, secure, true, tel)
		for range 3 {
			if err := c.call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := withoutLabels(scrape())
		if tc.want != strings.Contains(got, "\nfn_tls_plaintext_requests_total 3\n") ||
			tc.want != strings.Contains(got, "\nfn_tls_plaintext_requests_total ") {
			t.Errorf("%s: counted %t, want %t:\n%s", name, !tc.want, tc.want, got)
		}
	}
}
