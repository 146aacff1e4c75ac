// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// TestCallersNeedAnIdentity calls an image-resolver with a certificate without showing one.
func TestCallersNeedAnIdentity(t *testing.T) {
	for name, want := range map[string]connect.Code{
		"spiffe://function-runner/image-resolver": connect.CodeUnauthenticated,
		"": connect.CodeInvalidArgument, // the image has no name
	} {
		frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
		if name != "" {
			frame.Identity = mtlstest.NewAuthority(t, time.Hour).Identity(t, name)
		}
		cfg := newConfig(t)
		cfg.Callers = []string{"spiffe://function-runner/gateway"}
		component, err := imageresolver.New(cfg, frame)
		if err != nil {
			t.Fatal(err)
		}
		endpoint := component.Endpoints[0]
		if (endpoint.TLS != nil) != (name != "") {
			t.Errorf("with the identity %q, TLS is %v", name, endpoint.TLS)
		}
		server := httptest.NewServer(endpoint.Handler)
		client := imageresolverv1connect.NewImageResolverServiceClient(server.Client(), server.URL)
		_, err = client.ResolveImage(t.Context(), new(imageresolverv1.ResolveImageRequest))
		if connect.CodeOf(err) != want {
			t.Errorf("with the identity %q: %v, want %v", name, err, want)
		}
		server.Close()
	}
}
