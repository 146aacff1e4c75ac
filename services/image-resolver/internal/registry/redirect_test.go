// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// encrypted is a world where registries have certificates.
type encrypted struct {
	*world
	authority *testcert.Authority
	// found is where names lead that do not lead outside, as DNS says.
	found map[string]string
}

func newEncrypted(t *testing.T) *encrypted {
	t.Helper()
	w := &encrypted{world: newWorld(t), authority: testcert.NewAuthority(t), found: make(map[string]string)}
	transport := w.Transport.(*http.Transport)
	transport.TLSClientConfig.RootCAs = w.authority.Pool()
	transport.TLSClientConfig.ServerName = "localhost" // which the certificates are for
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		found := "203.0.113.1"
		if addr, ok := w.found[host]; ok {
			found = addr
		}
		if err := dialguard.Check(ctx, net.JoinHostPort(found, "443")); err != nil {
			return nil, &net.OpError{Op: "dial", Err: err}
		}
		return dial(ctx, network, address)
	}
	return w
}

// addTLS makes a registry of that name.
func (w *encrypted) addTLS(
	t *testing.T, name string, middleware ...func(http.Handler) http.Handler,
) *testregistry.Registry {
	t.Helper()
	r := testregistry.Start(t, w.authority.Server(t, time.Now().Add(time.Hour)), middleware...)
	w.hosts[name] = r.Host
	return r
}

// sendTo redirects requests to a path that ends like that.
func sendTo(target, path string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, path) {
				http.Redirect(w, req, target, http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
}

// tokensFrom asks for tokens of that server.
func tokensFrom(realm, _ string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	}
}

func TestRegistryLeadsToNoLocalAddress(t *testing.T) {
	const ping, manifest = "/v2/", "/manifests/v1"
	tests := map[string]struct {
		reason string
		send   func(target, path string) func(http.Handler) http.Handler
		path   string
		target string
	}{
		"ping to a port here":      {"the ping is the library's own", sendTo, ping, "http://127.0.0.1:15000/quitquitquit"},
		"ping to metadata":         {"it gives out credentials", sendTo, ping, "https://169.254.169.254/latest/meta-data"},
		"ping to a name":           {"a name is no way around", sendTo, ping, "http://localhost:9464/"},
		"manifest to a port here":  {"so is anything else", sendTo, manifest, "http://127.0.0.1:15000/quitquitquit"},
		"manifest to metadata":     {"so is anything else", sendTo, manifest, "https://169.254.169.254/latest/meta-data"},
		"manifest to a name":       {"a name is no way around", sendTo, manifest, "http://localhost:9464/"},
		"capitals":                 {"hosts have no case", sendTo, manifest, "https://LocalHost:9464/"},
		"name with a dot":          {"the same name", sendTo, manifest, "https://localhost.:9464/"},
		"below localhost":          {"all of these names are here", sendTo, manifest, "https://x.localhost:9464/"},
		"IPv6":                     {"the same machine", sendTo, manifest, "http://[::1]:9464/"},
		"IPv4 in IPv6":             {"the same machine", sendTo, manifest, "http://[::ffff:127.0.0.1]:9464/"},
		"IPv6 with a zone":         {"link-local", sendTo, manifest, "https://[fe80::1%25eth0]:9464/"},
		"any address":              {"which Linux takes for loopback", sendTo, manifest, "https://0.0.0.0:9464/"},
		"metadata in IPv6":         {"it is not link-local everywhere", sendTo, manifest, "https://[fd00:ec2::254]/latest"},
		"metadata of others":       {"it is not link-local everywhere", sendTo, manifest, "https://100.100.100.200/latest"},
		"metadata, translated":     {"gateways know the way", sendTo, manifest, "https://[64:ff9b::169.254.169.254]/latest"},
		"through a third":          {"what counts is where it begins", sendTo, manifest, "https://hop.example/"},
		"a name that leads inside": {"DNS is the attacker's", sendTo, manifest, "https://alias.example/"},
		"no host":                  {"Go connects to this machine", sendTo, manifest, "https://:9464/"},
		"wide digits":              {"package http maps them to ASCII", sendTo, manifest, "https://１２７.０.０.１:9464/"},
		"wide letters":             {"package http maps them to ASCII", sendTo, manifest, "https://ｌocalhost:9464/"},
		"decimal":                  {"resolvers and proxies know the way", sendTo, manifest, "https://2130706433:9464/"},
		"IPv6 with zone, NAT64": {
			"prefixes contain no zones", sendTo, manifest, "https://[64:ff9b::a9fe:a9fe%25eth0]:9464/",
		},
		"token server, wide digits": {"package http maps them to ASCII", tokensFrom, "", "https://１６９.２５４.１６９.２５４/token"},
		"token server by name":      {"it is asked as well", tokensFrom, "", "https://localhost:9464/token"},
		"token server leads inside": {"DNS is the attacker's", tokensFrom, "", "https://alias.example/token"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEncrypted(t)
			var asked atomic.Int64
			trap := httptest.NewUnstartedServer(http.NotFoundHandler())
			trap.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					asked.Add(1)
				}
			}
			trap.Start()
			t.Cleanup(trap.Close)
			for _, host := range []string{
				"127.0.0.1", "169.254.169.254", "localhost", "LocalHost", "localhost.", "x.localhost",
				"::1", "::ffff:127.0.0.1", "fe80::1%eth0", "0.0.0.0", "alias.example",
				"fd00:ec2::254", "100.100.100.200", "64:ff9b::169.254.169.254", "", "2130706433", "64:ff9b::a9fe:a9fe%eth0",
			} {
				w.hosts[host] = trap.Listener.Addr().String()
			}
			w.found["alias.example"] = "169.254.169.254"
			w.addTLS(t, "hop.example", sendTo("http://localhost:9464/", ""))
			w.addTLS(t, "evil.example", tc.send(tc.target, tc.path))
			_, err := w.manifest(t, "evil.example/fn", "v1")
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "local address") {
				t.Errorf("%v, want that it is rejected: %s", err, tc.reason)
			}
			if got := asked.Load(); got != 0 {
				t.Errorf("%d connections to %s: %s", got, tc.target, tc.reason)
			}
		})
	}
}

func TestRegistryLeadsElsewhere(t *testing.T) {
	const ping, manifest, moved = "/v2/", "/manifests/v1", "/v2/fn/manifests/moved"
	tests := map[string]struct {
		reason       string
		from, path   string
		scheme, host string
		to           string
	}{
		"CDN":                 {"what large registries do", "registry.example", manifest, "https", "cdn.example", moved},
		"ping":                {"a registry that has moved", "registry.example", ping, "https", "cdn.example", ping},
		"private store":       {"what a company's registry does", "registry.example", manifest, "https", "10.1.2.3", moved},
		"private to private":  {"what a company's registry does", "10.1.2.4", manifest, "https", "10.1.2.3", moved},
		"listed, without TLS": {"the administrator says so", "registry.example", manifest, "http", "store.example", moved},
		"on this machine":     {"a registry here leads to what is here", "127.0.0.1", manifest, "http", "localhost", moved},
		"to itself, by name":  {"wherever its name leads", "here.example", manifest, "https", "here.example", moved},
		"to itself":           {"it was asked for by that address", "169.254.1.1", manifest, "https", "169.254.1.1", moved},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEncrypted(t)
			w.Insecure = []string{"store.example:5000", "localhost:5000"}
			w.Local = []string{"127.0.0.1", "here.example", "here.example:5000", "169.254.1.1"}
			w.found["here.example"] = "127.0.0.1"
			from := w.addTLS(t, tc.from, sendTo(tc.scheme+"://"+tc.host+":5000"+tc.to, tc.path))
			from.Push(t, "fn:v1", v1.Config{})
			to := from
			switch {
			case tc.scheme == "http":
				to = w.add(t, tc.host)
			case tc.host != tc.from:
				to = w.addTLS(t, tc.host)
			}
			to.Push(t, "fn:moved", v1.Config{})
			if _, err := w.manifest(t, tc.from+"/fn", "v1"); err != nil || to.Count("GET "+tc.to) == 0 {
				t.Errorf("%v, %d requests to %s: %s", err, to.Count("GET "+tc.to), tc.host, tc.reason)
			}
		})
	}
}
