// SPDX-License-Identifier: Apache-2.0

// Package testregistry runs in-memory registries for tests, counts their requests and injects failures.
package testregistry

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is an in-memory registry that listens on a loopback port.
type Registry struct {
	// Host is the address of the registry, as host:port.
	Host string

	plain *httptest.Server

	mu       sync.Mutex
	handler  http.Handler
	requests []string
}

// Start starts a registry that runs until the test is over. It uses TLS if settings is not nil. Each middleware may
// answer a request instead of the registry. The last middleware receives requests first.
func Start(t testing.TB, settings *tls.Config, middleware ...func(http.Handler) http.Handler) *Registry {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	store := registry.New(registry.Logger(quiet), registry.WithReferrersSupport(true))
	r := &Registry{handler: store, plain: httptest.NewServer(store)}
	for _, m := range middleware {
		r.handler = m(r.handler)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	server.Config.ErrorLog = quiet
	if settings != nil {
		server.TLS = settings
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	t.Cleanup(r.plain.Close)
	r.Host = server.Listener.Addr().String()
	return r
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	handler := r.handler
	r.mu.Unlock()
	handler.ServeHTTP(w, req)
}

// Count returns the number of requests whose method and path begin with prefix, such as "GET /v2/fn/".
func (r *Registry) Count(prefix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, request := range r.requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// unkept is an option that closes each connection after its request, because tests report open connections as leaks.
var unkept = remote.WithTransport(&http.Transport{DisableKeepAlives: true})

// Push stores an image with the given configuration under a name such as "fn:v1". The request bypasses all middlewares.
func (r *Registry) Push(t testing.TB, at string, config v1.Config) v1.Image {
	t.Helper()
	image := Image(t, config)
	r.Tag(t, at, image)
	return image
}

// Tag stores an image under another name.
func (r *Registry) Tag(t testing.TB, at string, image v1.Image) {
	t.Helper()
	if err := remote.Write(r.reference(t, at), image, unkept); err != nil {
		t.Fatal(err)
	}
}

// PushIndex stores a multi-platform index under a name such as "fn:v1".
func (r *Registry) PushIndex(t testing.TB, at string, index v1.ImageIndex) {
	t.Helper()
	if err := remote.WriteIndex(r.reference(t, at), index, unkept); err != nil {
		t.Fatal(err)
	}
}

func (r *Registry) reference(t testing.TB, at string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(strings.TrimPrefix(r.plain.URL, "http://") + "/" + at)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Image returns an image with random content and the given configuration.
func Image(t testing.TB, config v1.Config) v1.Image {
	t.Helper()
	image, err := random.Image(64, 1)
	if err == nil {
		image, err = mutate.Config(image, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// BasicAuth returns a middleware that requires basic authentication. The function users returns passwords by user name.
func BasicAuth(users func() map[string]string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			user, password, ok := req.BasicAuth()
			if want, known := users()[user]; ok && known && password == want {
				next.ServeHTTP(w, req)
				return
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			// The answer repeats the password, as answers of careless servers do. Tests check that our errors hide it.
			Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED",
				"authentication required, not "+password+" in "+req.Header.Get("Authorization"))
		})
	}
}

// Refuse answers a request with an HTTP status and an error in the JSON format of registries.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errors":[{"code":"`+code+`","message":"`+message+`"}]}`)
}

// On returns a middleware that calls handler for requests whose path contains the text part. The handler may pass the
// request to next, which is the registry or another middleware.
func On(
	part string, handler func(w http.ResponseWriter, req *http.Request, next http.Handler),
) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.Contains(req.URL.Path, part) {
				handler(w, req, next)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
}
