// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// setup is a registry and the resolver's settings for it.
type setup struct {
	registry *testregistry.Registry
	config   imageresolver.Config
}

// open is a registry without authentication.
func open(middleware ...func(http.Handler) http.Handler) func(testing.TB) setup {
	return func(t testing.TB) setup {
		s := setup{testregistry.Start(t, nil, middleware...), newConfig(t)}
		s.config.InsecureRegistries = []string{s.registry.Host}
		return s
	}
}

// private is a registry with a user; the resolver knows the password, or not.
func private(known string) func(testing.TB) setup {
	return func(t testing.TB) setup {
		users := func() map[string]string { return map[string]string{"user": "right"} }
		s := open(testregistry.BasicAuth(users))(t)
		if known != "" {
			s.config.AuthSecretPath = t.TempDir() + "/config.json"
			dockerConfig(t, s.config.AuthSecretPath, s.registry.Host, "user", known)
		}
		return s
	}
}

// encrypted is a registry with TLS and the authorities that the resolver trusts.
func encrypted(
	end time.Duration, trusted func(theirs *testcert.Authority, t testing.TB) *testcert.Authority,
) func(testing.TB) setup {
	return func(t testing.TB) setup {
		authority := testcert.NewAuthority(t)
		s := setup{testregistry.Start(t, authority.Server(t, time.Now().Add(end))), newConfig(t)}
		s.config.RegistryTLSPaths = imageresolver.Pairs{s.registry.Host: {t.TempDir()}}
		if other := trusted(authority, t); other != nil {
			testcert.Write(t, s.config.RegistryTLSPaths[s.registry.Host][0], "ca.crt", other.PEM)
		}
		return s
	}
}

func theirs(a *testcert.Authority, _ testing.TB) *testcert.Authority { return a }
func untrusted(*testcert.Authority, testing.TB) *testcert.Authority  { return nil }
func another(_ *testcert.Authority, t testing.TB) *testcert.Authority {
	return testcert.NewAuthority(t)
}

// answer replaces what a registry has under a path.
func answer(part string, status int, content string, headers ...string) func(http.Handler) http.Handler {
	return testregistry.On(part, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, content)
	})
}

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		reason string
		setup  func(testing.TB) setup
		image  string // "fn:v1" if empty
		class  fault.Class
		says   []string
	}{
		"no password": {
			"a password has to be added", private(""), "", fault.Precondition,
			[]string{"UNAUTHORIZED: authentication required", "no credentials are configured"},
		},
		"wrong password": {
			"the password has to be changed", private(password), "", fault.Precondition,
			[]string{"UNAUTHORIZED: authentication required", "check the credentials for it in /"},
		},
		"missing authority": {
			"it has to be added", encrypted(time.Hour, untrusted), "", fault.Precondition,
			[]string{"unknown authority", "ca.crt"},
		},
		"wrong authority": {
			"the right one has to be added", encrypted(time.Hour, another), "", fault.Precondition,
			[]string{"unknown authority", "ca.crt"},
		},
		"expired certificate": {
			"it has to be renewed", encrypted(-time.Hour, theirs), "", fault.Precondition,
			[]string{"expired", "renew its certificate"},
		},
		"unknown tag": {
			"never NotFound, which has another meaning", open(), "fn:v2", fault.Precondition,
			[]string{"MANIFEST_UNKNOWN", "HTTP 404", "check the image's name"},
		},
		"unknown repository": {
			"never NotFound", open(), "other:v1", fault.Precondition, []string{"NAME_UNKNOWN", "HTTP 404"},
		},
		"too many requests": {
			"a long Retry-After is passed on", open(answer("/manifests/", http.StatusTooManyRequests, "{}",
				"Retry-After", "3600")), "",
			fault.Exhausted,
			[]string{"429", "limits how often"},
		},
		"no JSON error": {
			"the registry's words, whatever they are", open(answer("/manifests/", http.StatusForbidden, "blocked by firewall")),
			"", fault.Precondition,
			[]string{"403", "blocked by firewall"},
		},
		"no tag at all": {
			"it means the tag latest", open(), "fn", fault.Precondition, []string{"/fn:latest", "MANIFEST_UNKNOWN"},
		},
		"manifest of 5 MB": {
			"larger than registries have to accept", open(answer("/manifests/", http.StatusOK, strings.Repeat(" ", 5<<20))), "",
			fault.Precondition,
			[]string{"larger than 4 MiB"},
		},
		"garbage manifest": {
			"a proxy's login page, perhaps", open(answer("/manifests/", http.StatusOK, "<html>")), "", fault.Precondition,
			[]string{"manifest is not valid JSON"},
		},
		"tampered config": {
			"content that is not what its digest says", open(answer("/blobs/", http.StatusOK, "garbage")), "",
			fault.Precondition,
			[]string{"tampers with it"},
		},
		"malformed name": {"the caller's mistake", open(), "FN:v1", fault.Invalid, []string{"not a valid image name"}},
		"login without a realm": {
			"a broken registry", open(answer("/v2/", http.StatusUnauthorized, "", "WWW-Authenticate", "Bearer x=y")), "",
			fault.Precondition,
			[]string{"log in", "realm"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tc.setup(t)
			s.registry.Push(t, "fn:v1", function)
			r, said := start(t, s.config)
			image := tc.image
			if image == "" {
				image = "fn:v1"
			}
			_, err := resolve(t, r, s.registry.Host+"/"+image)
			if err == nil || fault.Of(err) != tc.class {
				t.Fatalf("error %v of class %v, want %v: %s", err, fault.Of(err), tc.class, tc.reason)
			}
			expectText(t, err, tc.says...)
			expectNoSecret(t, said.all())
		})
	}
}

func TestImageThatCannotRun(t *testing.T) {
	tests := map[string]struct {
		reason string
		push   func(*testing.T, *testregistry.Registry)
		says   string
	}{
		"nothing to run": {
			"neither Entrypoint nor Cmd", func(t *testing.T, r *testregistry.Registry) { r.Push(t, "fn:v1", v1.Config{}) },
			"neither Entrypoint nor Cmd",
		},
		"other platform": {"an index without ours", func(t *testing.T, r *testregistry.Registry) {
			r.PushIndex(t, "fn:v1", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
				Add: testregistry.Image(t,
					function), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}},
			}))
		}, "no image for linux/amd64, only for linux/arm64"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := open()(t)
			tc.push(t, s.registry)
			r, _ := start(t, s.config)
			_, err := resolve(t, r, s.registry.Host+"/fn:v1")
			if fault.Of(err) != fault.Precondition {
				t.Fatalf("%v, want Precondition: %s", err, tc.reason)
			}
			expectText(t, err, tc.says)
		})
	}
}

func TestGarbageConfiguration(t *testing.T) {
	content := []byte("garbage")
	s := open(
		answer("/blobs/", http.StatusOK, string(content)),
		answer("/manifests/", http.StatusOK, manifestOf(content), "Content-Type",
			"application/vnd.oci.image.manifest.v1+json"),
	)(t)
	r, _ := start(t, s.config)
	_, err := resolve(t, r, s.registry.Host+"/fn:v1")
	if fault.Of(err) != fault.Precondition {
		t.Fatalf("%v, want Precondition", err)
	}
	expectText(t, err, "configuration", "is not valid")
}

// manifestOf returns a manifest with that configuration.
func manifestOf(config []byte) string {
	return `{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + oci.Digest(
		config,
	) + `"},"layers":[]}`
}

func TestRegistryIsDown(t *testing.T) {
	t.Parallel()
	s := open(answer("/", http.StatusServiceUnavailable, "maintenance"))(t)
	s.config.InsecureRegistries = append(s.config.InsecureRegistries, "127.0.0.1:1")
	r, _ := start(t, s.config)
	_, err := resolve(t, r, s.registry.Host+"/fn:v1")
	if fault.Of(err) != fault.Unavailable {
		t.Errorf("503: %v, want Unavailable", err)
	}
	expectText(t, err, "maintenance")
	_, err = resolve(t, r, "127.0.0.1:1/fn:v1")
	if fault.Of(err) != fault.Unavailable {
		t.Errorf("closed port: %v, want Unavailable", err)
	}
	expectText(t, err, "connection refused", "check that it runs")
}

func TestCallersDeadline(t *testing.T) {
	arrived, proceed := make(chan struct{}, 10), make(chan struct{})
	s := open(
		testregistry.On("/", func(http.ResponseWriter, *http.Request, http.Handler) { arrived <- struct{}{}; <-proceed }),
	)(t)
	t.Cleanup(func() { close(proceed) })
	r, _ := start(t, s.config)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1"})
	if fault.Of(err) != fault.DeadlineExceeded {
		t.Errorf("%v, want DeadlineExceeded", err)
	}
	expectText(t, err, "resolve", s.registry.Host)
}

func TestRetries(t *testing.T) {
	tests := map[string]struct {
		reason string
		fail   func(w http.ResponseWriter)
	}{
		"slow down": {"Retry-After is honoured", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		"bad gateway": {"a proxy has a hiccup", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }},
		"cut off":     {"a connection breaks", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		"unauthorized": {
			"a token or password has just been replaced", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed atomic.Bool
			s := open(testregistry.On("/manifests/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if failed.CompareAndSwap(false, true) {
					tc.fail(w)
					return
				}
				next.ServeHTTP(w, req)
			}))(t)
			s.registry.Push(t, "fn:v1", function)
			r, _ := start(t, s.config)
			if _, err := resolve(t, r, s.registry.Host+"/fn:v1"); err != nil {
				t.Errorf("%v, want success at the second try: %s", err, tc.reason)
			}
		})
	}
}

func TestClientCertificate(t *testing.T) {
	authority := testcert.NewAuthority(t)
	settings := authority.Server(t, time.Now().Add(time.Hour))
	settings.ClientAuth = tls.RequireAndVerifyClientCert
	settings.ClientCAs = authority.Pool()
	s := setup{testregistry.Start(t, settings), newConfig(t)}
	s.registry.Push(t, "fn:v1", function)
	directory := t.TempDir()
	testcert.Write(t, directory, "ca.pem", authority.PEM)
	s.config.RegistryTLSPaths = imageresolver.Pairs{s.registry.Host: {directory}}

	r, _ := start(t, s.config)
	_, err := resolve(t, r, s.registry.Host+"/fn:v1")
	if fault.Of(err) != fault.Precondition {
		t.Fatalf("without a client certificate: %v, want Precondition", err)
	}
	expectText(t, err, "client certificate")

	cert, key := authority.Issue(t, time.Now().Add(time.Hour))
	testcert.Write(t, directory, "tls.crt", cert)
	testcert.Write(t, directory, "tls.key", key)
	r, _ = start(t, s.config)
	if _, err := resolve(t, r, s.registry.Host+"/fn:v1"); err != nil {
		t.Errorf("with a client certificate: %v", err)
	}
}
