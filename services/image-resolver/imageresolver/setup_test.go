// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// TestMain runs the tests without the credentials of the user.
func TestMain(m *testing.M) {
	if err := os.Setenv("DOCKER_CONFIG", "/nonexistent"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// function is what the images of these tests run.
var function = v1.Config{Entrypoint: []string{"/fn"}, Cmd: []string{"--quiet"}}

// password is the secret of these tests.
const password = "hunter2-hunter2"

// newConfig returns a configuration with the defaults, for tests.
func newConfig(t testing.TB) imageresolver.Config {
	t.Helper()
	cfg := imageresolver.Config{
		Address: "127.0.0.1:0", Platform: "linux/amd64",
		CacheTagTTL: 5 * time.Minute, CacheFailureTTL: time.Nanosecond,
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// traces is all that a resolver says about itself.
type traces struct {
	mu    sync.Mutex
	log   bytes.Buffer
	spans *tracetest.InMemoryExporter
}

func (s *traces) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// logger returns a logger of everything.
func (s *traces) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// all returns everything that was said.
func (s *traces) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String() + fmt.Sprintf("%+v", s.spans.GetSpans())
}

// start runs a resolver until the test ends.
func start(t testing.TB, cfg imageresolver.Config) (*imageresolver.Resolver, *traces) {
	t.Helper()
	said := &traces{spans: tracetest.NewInMemoryExporter()}
	tel := telemetry.Discard()
	tel.Log = said.logger()
	tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(said.spans))
	return startWith(t, cfg, tel), said
}

// startWith is start with telemetry of the caller's.
func startWith(t testing.TB, cfg imageresolver.Config, tel *telemetry.Telemetry) *imageresolver.Resolver {
	t.Helper()
	r, err := imageresolver.NewResolver(cfg, servermain.Frame{Telemetry: tel, Health: new(serve.Health)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, r.Tasks())
	return r
}

// run runs tasks until the test ends.
func run(t testing.TB, tasks []serve.Task) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running errgroup.Group
	for _, task := range tasks {
		running.Go(func() error { return task(ctx) })
	}
	t.Cleanup(func() {
		stop()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// resolve asks for an image.
func resolve(t testing.TB, r *imageresolver.Resolver, image string) (*imageresolverv1.ResolveImageResponse, error) {
	t.Helper()
	return r.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image})
}

// dockerConfig writes a docker configuration with one user of a registry.
func dockerConfig(t testing.TB, path, host, user, password string) {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	replace(t, path, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth))
}

// replace changes a file in one step, as the kubelet does.
func replace(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// expectText checks that an error says all of the texts and nothing secret.
func expectText(t testing.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	expectNoSecret(t, err.Error())
}

// expectNoSecret checks that text holds no form of the secret.
func expectNoSecret(t testing.TB, text string) {
	t.Helper()
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("user:" + password))} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %q", text)
		}
	}
}
