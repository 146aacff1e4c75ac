// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// rotating is a private registry whose password and certificate change.
type rotating struct {
	*testregistry.Registry
	users    atomic.Pointer[map[string]string]
	settings atomic.Pointer[tls.Config]
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := new(rotating)
	settings := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return r.settings.Load(), nil
		},
	}
	hangUp := func(next http.Handler) http.Handler { // so that each request sees the certificate
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Connection", "close")
			next.ServeHTTP(w, req)
		})
	}
	r.Registry = testregistry.Start(t, settings,
		testregistry.BasicAuth(func() map[string]string { return *r.users.Load() }), hangUp)
	return r
}

func (r *rotating) show(t *testing.T, a *testcert.Authority) {
	t.Helper()
	r.settings.Store(a.Server(t, time.Now().Add(time.Hour)))
}

// load asks for an image from several sides until it is stopped or a request
// fails.
type load struct {
	answered chan struct{}
	stopped  atomic.Bool
	running  *errgroup.Group
	failed   <-chan struct{}
}

func newLoad(t *testing.T, r *imageresolver.Resolver, image string) *load {
	t.Helper()
	l := &load{answered: make(chan struct{}, 1000)}
	running, ctx := errgroup.WithContext(t.Context())
	l.running = running
	l.failed = ctx.Done()
	for range 4 {
		l.running.Go(func() error {
			for !l.stopped.Load() {
				_, err := r.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image, Refresh: true})
				if err != nil {
					return err
				}
				select {
				case l.answered <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}
	return l
}

// pass waits for some more answers.
func (l *load) pass() {
	for len(l.answered) > 0 {
		<-l.answered
	}
	for range 12 {
		select {
		case <-l.answered:
		case <-l.failed:
		}
	}
}

func (l *load) finish(t *testing.T) {
	t.Helper()
	l.stopped.Store(true)
	if err := l.running.Wait(); err != nil {
		t.Errorf("a request was lost: %v", err)
	}
}

// TestRotationUnderLoad replaces password and authority of a registry in the
// order of an administrator who does not wait until the resolver has noticed the new
// files.
func TestRotationUnderLoad(t *testing.T) {
	registry := newRotating(t)
	registry.users.Store(&map[string]string{"one": "1"})
	old, fresh := testcert.NewAuthority(t), testcert.NewAuthority(t)
	registry.show(t, old)
	registry.Push(t, "fn:v1", function)

	cfg := newConfig(t)
	cfg.AuthSecretPath = filepath.Join(t.TempDir(), "config.json")
	directory := t.TempDir()
	cfg.RegistryTLSPaths = imageresolver.Pairs{registry.Host: {directory}}
	authorities := filepath.Join(directory, "ca.crt")
	dockerConfig(t, cfg.AuthSecretPath, registry.Host, "one", "1")
	replace(t, authorities, old.PEM)
	r, _ := start(t, cfg)
	load := newLoad(t, r, registry.Host+"/fn:v1")
	defer load.finish(t)

	load.pass()
	registry.users.Store(&map[string]string{"one": "1", "two": "2"})
	dockerConfig(t, cfg.AuthSecretPath, registry.Host, "two", "2")
	registry.users.Store(&map[string]string{"two": "2"})
	load.pass()
	replace(t, authorities, slices.Concat(old.PEM, fresh.PEM))
	registry.show(t, fresh)
	load.pass()
	replace(t, authorities, fresh.PEM)
	load.pass()
}
