// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// noCredentials has none.
type noCredentials struct{}

func (noCredentials) Lookup(context.Context, string) (credentials.Credential, error) {
	return credentials.Credential{}, nil
}

func (noCredentials) Renew(context.Context, string) (credentials.Credential, error) {
	return credentials.Credential{}, nil
}

// registries returns a source of images of a registry, and of its mirrors.
func registries(t *testing.T, origin string, mirrors ...string) imagestore.Registries {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := registry.New(registry.Config{
		Transport: transport, Credentials: noCredentials{}, Concurrent: 8, Telemetry: telemetry.Discard(),
		Insecure: append([]string{origin}, mirrors...), Mirrors: map[string][]string{origin: mirrors},
	})
	return imagestore.Registries{Client: client}
}

// hang answers with the beginning of an answer only, until its caller or the test ends.
func hang(t *testing.T) func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
	t.Helper()
	return func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-req.Context().Done():
		case <-t.Context().Done():
		}
	}
}

// TestAnswersThatDoNotEnd has a registry whose manifest does not end.
func TestAnswersThatDoNotEnd(t *testing.T) {
	origin := testregistry.Start(t, nil, testregistry.On("/manifests/", hang(t)))
	source := registries(t, origin.Host)
	source.Timeout = 200 * time.Millisecond
	_, _, err := source.Image(t.Context(), origin.Host+"/fn", "sha256:"+strings.Repeat("0", 64))
	if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "have not come in 200ms") {
		t.Errorf("error %v, want one that says that the answer does not end", err)
	}
}

// TestLayerOfASlowMirrorComesFromTheRegistry has a mirror whose layers stop in the middle.
func TestLayerOfASlowMirrorComesFromTheRegistry(t *testing.T) {
	origin := testregistry.Start(t, nil)
	mirror := testregistry.Start(t, nil, testregistry.On("/blobs/", hang(t)))
	image := origin.Push(t, "fn:v1", v1.Config{})
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	var tooSlow []error
	err = registries(t, origin.Host, mirror.Host).Layer(t.Context(), origin.Host+"/fn", digest.String(),
		func(content io.Reader, stop func(error)) error {
			if len(tooSlow) == 0 {
				tooSlow = append(tooSlow, errors.New("too slow"))
				time.AfterFunc(100*time.Millisecond, func() { stop(tooSlow[0]) })
			}
			_, err := io.ReadAll(content)
			return err
		})
	if err != nil || mirror.Count("GET /v2/fn/blobs") != 1 || origin.Count("GET /v2/fn/blobs") != 1 {
		t.Errorf("error %v, %d requests to the mirror and %d to the registry, want one each", err,
			mirror.Count("GET /v2/fn/blobs"), origin.Count("GET /v2/fn/blobs"))
	}
}
