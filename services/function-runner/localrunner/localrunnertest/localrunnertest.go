// SPDX-License-Identifier: Apache-2.0

// Package localrunnertest starts container registries in memory, and pushes images of a test function to them. Tests
// then run these images on this machine.
package localrunnertest

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// Credentials of private registries.
const (
	User     = "user"
	Password = "hunter2-hunter2"
)

// Registry is an in-memory registry that listens on loopback.
type Registry struct {
	// Host is the host and port of the registry.
	Host string

	server *httptest.Server
	auth   authn.Authenticator
}

// Open starts a registry without TLS and without authentication.
func Open(t testing.TB) *Registry {
	t.Helper()
	return start(t, httptest.NewServer(newRegistry()), authn.Anonymous)
}

// Private starts a registry with TLS and its own CA. Clients must authenticate with [User] and [Password].
func Private(t testing.TB) *Registry {
	t.Helper()
	images := newRegistry()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != User || password != Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	return start(t, server, authn.FromConfig(authn.AuthConfig{Username: User, Password: Password}))
}

func newRegistry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

func start(t testing.TB, server *httptest.Server, auth authn.Authenticator) *Registry {
	t.Helper()
	t.Cleanup(server.Close)
	return &Registry{Host: server.Listener.Addr().String(), server: server, auth: auth}
}

// Stop stops the registry.
func (r *Registry) Stop() { r.server.Close() }

// Authority returns the certificate of a private registry's authority, in PEM.
func (r *Registry) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// Push pushes an image of the test function. The argument at is the image's repository and tag, such as "fn:v1". The
// argument behaviour is the first argument of the test function, and selects its behaviour. If cmd is empty, the
// image's Cmd contains behaviour. Otherwise the Entrypoint contains behaviour, and cmd is the Cmd.
func (r *Registry) Push(t testing.TB, at, behaviour string, cmd ...string) {
	t.Helper()
	var options []name.Option
	if r.server.Certificate() == nil {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(r.Host+"/"+at, options...)
	if err != nil {
		t.Fatal(err)
	}
	client := r.server.Client()
	defer client.CloseIdleConnections()
	with := []remote.Option{remote.WithTransport(client.Transport), remote.WithAuth(r.auth)}
	if err := remote.Write(ref, image(t, behaviour, cmd), with...); err != nil {
		t.Fatal(err)
	}
}

// image returns a container image with the test function, similar to the images that the build tool ko creates.
func image(t testing.TB, behaviour string, cmd []string) v1.Image {
	t.Helper()
	content := layer(t)
	files, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, files)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config = v1.Config{
		Entrypoint: []string{"fn"}, Cmd: []string{behaviour}, Env: []string{"PATH=/bin:/ko-app"}, WorkingDir: "/srv",
	}
	if len(cmd) > 0 {
		file.Config.Entrypoint = []string{"fn", behaviour}
		file.Config.Cmd = cmd
	}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	return img
}

// layer returns the tar archive of a layer with the test function.
func layer(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	testfn.Install(t, dir, "fn")
	program, err := os.ReadFile(filepath.Join(dir, "fn"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "/ko-app/fn", Mode: 0o500, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(program)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// SharedDir returns a temporary directory that all users can enter, such as the users of sandboxes.
func SharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
