// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hunter2-hunter2"

// fixed are credentials by host.
type fixed map[string]authn.AuthConfig

func (f fixed) Lookup(_ context.Context, repository string) (credentials.Credential, error) {
	host, _, _ := strings.Cut(repository, "/")
	return credentials.Credential{Auth: f[host], Origin: "config.json"}, nil
}

func (f fixed) Renew(ctx context.Context, repository string) (credentials.Credential, error) {
	return f.Lookup(ctx, repository)
}

// world is a set of registries with names of their own.
type world struct {
	registry.Config
	// hosts is where each name leads, with a port or without.
	hosts map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{hosts: make(map[string]string)}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			var d net.Dialer
			return d.DialContext(ctx, network, cmp.Or(w.hosts[address], w.hosts[host]))
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	w.Config = registry.Config{Transport: transport, Credentials: fixed{}, Concurrent: 10, Telemetry: telemetry.Discard()}
	return w
}

// add makes a registry of that name, without TLS.
func (w *world) add(t *testing.T, name string, middleware ...func(http.Handler) http.Handler) *testregistry.Registry {
	t.Helper()
	r := testregistry.Start(t, nil, middleware...)
	w.hosts[name] = r.Host
	return r
}

// newClient makes a client. Without further settings, it has no credentials and few fetches at a time.
func newClient(t *testing.T, cfg registry.Config) *registry.Client {
	t.Helper()
	if cfg.Credentials == nil {
		cfg.Credentials = fixed{}
	}
	if cfg.Telemetry == nil {
		cfg.Telemetry = telemetry.Discard()
	}
	c := registry.New(cfg)
	return c
}

// manifest asks for a manifest and reports whether the registry wanted credentials.
func (w *world) manifest(t *testing.T, repository, reference string) (wanted bool, err error) {
	t.Helper()
	err = newClient(t, w.Config).With(t.Context(), repository, func(ctx context.Context, s *registry.Session) error {
		_, err := s.Manifest(ctx, reference)
		wanted = s.WantedCredentials()
		return err
	})
	return wanted, err
}

func TestPlainHTTPOnlyWhereListed(t *testing.T) {
	w := newWorld(t)
	plain := w.add(t, "plain.example")
	w.hosts["10.1.2.3"] = plain.Host // an address that is private is not listed thereby
	plain.Push(t, "fn:v1", v1.Config{})
	for _, host := range []string{"plain.example", "10.1.2.3"} {
		_, err := w.manifest(t, host+"/fn", "v1")
		if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "listed as insecure") {
			t.Errorf("%s: %v, want Precondition that says how to allow it", host, err)
		}
	}
	if got := plain.Count("GET"); got != 0 {
		t.Errorf("%d requests without TLS", got)
	}
	for _, listed := range []string{"PLAIN.example", "plain.example:443", "plain.example:0443"} {
		w.Insecure = []string{listed}
		if _, err := w.manifest(t, "plain.example/fn", "v1"); err != nil {
			t.Errorf("listed as %s: %v", listed, err)
		}
	}
	w.Insecure = []string{"plain.example:80"} // which is another one
	if _, err := w.manifest(t, "plain.example/fn", "v1"); err == nil {
		t.Error("it is insecure at another port, and asked without TLS")
	}
}

func TestARegistryThatIsDownIsNoReasonForPlainHTTP(t *testing.T) {
	for _, host := range []string{"down.example", "10.0.0.5:5000", "[fd00::5]:5000"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			name, _, _ := net.SplitHostPort(host)
			w.hosts[cmp.Or(name, host)] = "127.0.0.1:1"
			_, err := w.manifest(t, host+"/fn", "v1")
			if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "connection refused: check that it runs") ||
				strings.Contains(err.Error(), "insecure") {
				t.Errorf("%v, want Unavailable, and no advice to use plain HTTP", err)
			}
		})
	}
}

func TestCertificateErrorIsNotAvoidedByPlainHTTP(t *testing.T) {
	w := newWorld(t)
	authority := testcert.NewAuthority(t)
	encrypted := testregistry.Start(t, authority.Server(t, time.Now().Add(time.Hour)))
	w.hosts["tls.example"] = encrypted.Host
	w.Insecure = []string{"tls.example"}
	w.Credentials = fixed{"tls.example": {Username: "user", Password: secret}}
	_, err := w.manifest(t, "tls.example/fn", "v1")
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, want Precondition about the certificate", err)
	}
}

// TestPlainHTTPIsNoWayAroundACertificate has an attacker answer at the port for plain HTTP.
func TestPlainHTTPIsNoWayAroundACertificate(t *testing.T) {
	w := newWorld(t)
	authority := testcert.NewAuthority(t)
	encrypted := testregistry.Start(t, authority.Server(t, time.Now().Add(time.Hour)))
	plain := w.add(t, "tls.example:80")
	plain.Push(t, "fn:v1", v1.Config{})
	w.hosts["tls.example:443"] = encrypted.Host
	w.Insecure = []string{"tls.example"}
	_, err := w.manifest(t, "tls.example/fn", "v1")
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, want Precondition about the certificate", err)
	}
	if got := plain.Count(""); got != 0 {
		t.Errorf("%d requests without TLS", got)
	}
}

func TestMirrors(t *testing.T) {
	tests := map[string]struct {
		reason        string
		mirror        func(http.Handler) http.Handler
		inMirror      bool
		inOrigin      bool
		askOrigin     bool
		class         fault.Class
		wantErr, says string
	}{
		"mirror has it":   {"the registry is spared", nil, true, true, false, 0, "", ""},
		"mirror lacks it": {"then the registry is asked", nil, false, true, true, 0, "", ""},
		"mirror is broken": {
			"then the registry is asked", func(http.Handler) http.Handler { return http.NotFoundHandler() }, false, true, true,
			0, "", "",
		},
		"neither has it": {
			"the registry's answer counts, and names the mirror's", nil, false, false, true, fault.Precondition,
			"MANIFEST_UNKNOWN", "mirror.example",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var middleware []func(http.Handler) http.Handler
			if tc.mirror != nil {
				middleware = append(middleware, tc.mirror)
			}
			mirror, origin := w.add(t, "mirror.example", middleware...), w.add(t, "origin.example")
			mirror.Push(t, "proxy/fn:other", v1.Config{})
			origin.Push(t, "fn:other", v1.Config{})
			if tc.inMirror {
				mirror.Push(t, "proxy/fn:v1", v1.Config{})
			}
			if tc.inOrigin {
				origin.Push(t, "fn:v1", v1.Config{})
			}
			w.Insecure = []string{"mirror.example", "origin.example"}
			w.Mirrors = map[string][]string{"Origin.example:443": {"mirror.example/proxy/"}}
			_, err := w.manifest(t, "origin.example/fn", "v1")
			if (err == nil) != (tc.wantErr == "") {
				t.Fatalf("%v: %s", err, tc.reason)
			}
			if err != nil &&
				(fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.wantErr) || !strings.Contains(err.Error(),
					tc.says)) {
				t.Errorf("%v, want %v with %q and %q: %s", err, tc.class, tc.wantErr, tc.says, tc.reason)
			}
			if asked := origin.Count("GET /v2/fn/") > 0; asked != tc.askOrigin {
				t.Errorf("the registry was asked: %v, want %v: %s", asked, tc.askOrigin, tc.reason)
			}
		})
	}
}

// tokens is a registry that wants tokens of a token server, which has a user.
type tokens struct {
	// refuse makes the token server fail that many times first.
	refuse atomic.Int64
	status int
	// stale makes the registry refuse that many tokens first.
	stale  atomic.Int64
	answer string
}

func (k *tokens) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/token" {
			k.issue(w, req)
			return
		}
		if req.Header.Get("Authorization") != "Bearer token-"+secret || (req.URL.Path != "/v2/" && k.stale.Add(-1) >= 0) {
			w.Header().Set("WWW-Authenticate",
				fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope="repository:fn:pull"`, req.Host))
			testregistry.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "no good: "+req.Header.Get("Authorization"))
			return
		}
		next.ServeHTTP(w, req)
	})
}

func (k *tokens) issue(w http.ResponseWriter, req *http.Request) {
	_, password, _ := req.BasicAuth()
	switch {
	case k.refuse.Add(-1) >= 0:
		w.WriteHeader(k.status)
	case password != secret:
		testregistry.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "wrong password "+password)
	default:
		_, _ = io.WriteString(w, k.answer)
	}
}

func TestTokens(t *testing.T) {
	const good = `{"token":"token-` + secret + `"}`
	tests := map[string]struct {
		reason   string
		refuse   int64
		status   int
		stale    int64
		password string
		answer   string
		says     string // in the error; empty for success
	}{
		"plain":                 {"the usual way", 0, 0, 0, secret, good, ""},
		"second try, 503":       {"the token server has a hiccup", 1, http.StatusServiceUnavailable, 0, secret, good, ""},
		"second try, 401":       {"the token server learns of users late", 1, http.StatusUnauthorized, 0, secret, good, ""},
		"token ended":           {"a fresh one is fetched", 0, 0, 1, secret, good, ""},
		"tokens end twice":      {"and everything from the start, once", 0, 0, 2, secret, good, ""},
		"tokens are never good": {"but not for ever", 0, 0, 1000, secret, good, "no good"},
		"wrong password":        {"nothing secret in the error", 0, 0, 0, secret + "-wrong", good, "UNAUTHORIZED"},
		"no token in the answer": {
			"nothing secret in the error", 0, 0, 0, secret, `{"refresh_token":"` + secret + `"}`, "and not with a token",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			k := &tokens{status: tc.status, answer: tc.answer}
			k.refuse.Store(tc.refuse)
			k.stale.Store(tc.stale)
			w.add(t, "token.example", k.middleware).Push(t, "fn:v1", v1.Config{})
			w.Insecure = []string{"token.example"}
			w.Credentials = fixed{"token.example": {Username: "user", Password: tc.password}}
			wanted, err := w.manifest(t, "token.example/fn", "v1")
			if tc.says == "" {
				if err != nil || !wanted {
					t.Errorf("%v, wanted credentials: %v: %s", err, wanted, tc.reason)
				}
				return
			}
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.says) ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("%v, want Precondition with %q and without the secret: %s", err, tc.says, tc.reason)
			}
		})
	}
}

func TestCredentialsStayWithTheirRegistry(t *testing.T) {
	w := newWorld(t)
	var leaked atomic.Bool
	w.add(t, "storage.example", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") != "" {
				leaked.Store(true)
			}
			next.ServeHTTP(rw, req)
		})
	})
	w.add(
		t,
		"registry.example",
		testregistry.On("/manifests/", func(rw http.ResponseWriter, req *http.Request, _ http.Handler) {
			http.Redirect(rw, req, "http://storage.example/v2/fn/manifests/v1?signature="+secret, http.StatusTemporaryRedirect)
		}),
		testregistry.BasicAuth(func() map[string]string { return map[string]string{"user": secret} }),
	)
	w.Credentials = fixed{"registry.example": {Username: "user", Password: secret}}

	w.Insecure = []string{"registry.example"}
	_, err := w.manifest(t, "registry.example/fn", "v1")
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "plain HTTP to storage.example is rejected") {
		t.Errorf("redirect to plain HTTP: %v, want that it is rejected", err)
	}
	w.Insecure = append(w.Insecure, "storage.example")
	_, err = w.manifest(t, "registry.example/fn", "v1")
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v, want one without the signature", err)
	}
	if leaked.Load() {
		t.Error("the credentials went along with a redirect")
	}
}

func TestRedirectToThisMachineIsRejected(t *testing.T) {
	for _, target := range []string{"http://127.0.0.1:9/x", "http://169.254.169.254/latest/meta-data"} {
		w := newWorld(t)
		w.add(
			t,
			"registry.example",
			testregistry.On("/manifests/", func(rw http.ResponseWriter, req *http.Request, _ http.Handler) {
				http.Redirect(rw, req, target, http.StatusFound)
			}),
		)
		w.Insecure = []string{"registry.example", "169.254.169.254"}
		_, err := w.manifest(t, "registry.example/fn", "v1")
		if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "is rejected") {
			t.Errorf("%s: %v, want that it is rejected", target, err)
		}
	}
}

func TestTagsOnSeveralPages(t *testing.T) {
	pages := map[string]struct{ tags, link string }{
		"":   {`"v1","v2"`, `</v2/fn/tags/list?n=2&last=v2>; rel="next"`},
		"v2": {`"v3"`, ""},
	}
	tests := map[string]struct {
		reason, link, want string
	}{
		"pages":      {"the list goes on where Link says", pages[""].link, "v1 v2 v3"},
		"other host": {"it never leads elsewhere", `<http://169.254.169.254/v2/fn/tags/list>; rel="next"`, ""},
		"other path": {"it never leads elsewhere", `</v2/other/tags/list>; rel="next"`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(
				t,
				"registry.example",
				testregistry.On("/tags/list", func(rw http.ResponseWriter, req *http.Request, _ http.Handler) {
					page := pages[req.URL.Query().Get("last")]
					if page.link != "" {
						rw.Header().Set("Link", tc.link)
					}
					_, _ = io.WriteString(rw, `{"tags":[`+page.tags+`]}`)
				}),
			)
			w.Insecure = []string{"registry.example"}
			tags, err := w.tags(t, "registry.example/fn")
			if got := strings.Join(tags, " "); got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("tags %q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}
