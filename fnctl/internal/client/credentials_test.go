// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

// shown is what a server was shown.
type shown struct{ token, id string }

// serveTLS runs a server with a certificate for a URI, which answers no evaluation, and returns its URL.
func serveTLS(t *testing.T, authority *mtlstest.Authority, uri string, saw *shown) string {
	t.Helper()
	return serveTLSWith(t, authority, uri, saw, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})
}

// serveTLSWith does that with an answer.
func serveTLSWith(
	t *testing.T, authority *mtlstest.Authority, uri string, saw *shown, answer http.HandlerFunc,
) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw.token = r.Header.Get("Authorization")
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			saw.id = certs[0].URIs[0].String()
		}
		answer(w, r)
	}))
	certificate, key := authority.Issue(t, uri, time.Hour)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots,
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCredentials(t *testing.T) {
	authority, foreign := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	const id = "spiffe://function-runner/gateway"
	certificate, key := authority.Issue(t, "spiffe://function-runner/callers/me", time.Hour)
	ca, cert, keyFile := file(t, authority.PEM), file(t, certificate), file(t, key)
	tests := map[string]struct {
		credentials client.Credentials
		server      string
		want        shown
		err         string
	}{
		"token": {client.Credentials{Token: "t", Authority: ca, ServerID: id}, id, shown{token: "Bearer t"}, ""},
		"token file": {
			client.Credentials{TokenFile: file(t, []byte("t\n")), Authority: ca, ServerID: id},
			id,
			shown{token: "Bearer t"},
			"",
		},
		"certificate": {
			client.Credentials{Certificate: cert, Key: keyFile, Authority: ca, ServerID: id},
			id,
			shown{id: "spiffe://function-runner/callers/me"},
			"",
		},
		"a function pod as the gateway": {
			client.Credentials{Token: "t", Authority: ca, ServerID: id},
			"spiffe://function-runner/function/x",
			shown{},
			"the server's certificate is for [spiffe://function-runner/function/x]",
		},
		"another authority": {
			client.Credentials{Token: "t", Authority: file(t, foreign.PEM), ServerID: id}, id, shown{}, "unknown authority",
		},
		"the system's authorities": {client.Credentials{Token: "t", ServerID: id}, id, shown{}, "certificate"},
		"a missing file": {
			client.Credentials{TokenFile: "/missing", Authority: ca, ServerID: id}, id, shown{}, "read --token-file",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var saw shown
			g, err := client.New(client.Config{
				Address: serveTLS(t, authority, tc.server, &saw), MaxMessageBytes: 1 << 10, Credentials: tc.credentials,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(g.Close)
			_, err = g.ListPools(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			if saw != tc.want {
				t.Errorf("the server saw %+v, want %+v", saw, tc.want)
			}
		})
	}
}

// TestRedirectsAreNotFollowed has a server that sends clients on to another one, which would get the token.
func TestRedirectsAreNotFollowed(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	const id = "spiffe://function-runner/gateway"
	var thief shown
	target := serveTLS(t, authority, id, &thief)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var saw shown
		address := serveTLSWith(t, authority, id, &saw, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target+r.URL.Path, status)
		})
		g, err := client.New(client.Config{
			Address: address, MaxMessageBytes: 1 << 10,
			Credentials: client.Credentials{Token: "t", Authority: file(t, authority.PEM), ServerID: id},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.ListPools(t.Context()); err == nil || saw.token == "" || thief != (shown{}) {
			t.Errorf("status %d: error %v, the server saw %+v, that behind it %+v", status, err, saw, thief)
		}
		g.Close()
	}
}

// TestCredentialsNeedTLS has credentials that would be sent in plaintext, or that lack a part.
func TestCredentialsNeedTLS(t *testing.T) {
	for want, config := range map[string]client.Config{
		"a token with TLS only":       {Address: "localhost:9445", Credentials: client.Credentials{Token: "t"}},
		"--cert, --key and --ca with": {Address: "http://localhost:9445", Credentials: client.Credentials{Authority: "ca"}},
		"--cert and --key together":   {Address: "https://localhost:9443", Credentials: client.Credentials{Certificate: "c"}},
		"--token or --token-file": {
			Address: "https://localhost", Credentials: client.Credentials{Token: "t", TokenFile: "t"},
		},
		"read --ca": {Address: "https://localhost", Credentials: client.Credentials{Authority: "/missing"}},
	} {
		if _, err := client.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
