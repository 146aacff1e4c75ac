// SPDX-License-Identifier: Apache-2.0

package podmanager_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/config"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u}]}`

// TestCallersNeedAnIdentity calls a pod-manager with a certificate without showing one.
func TestCallersNeedAnIdentity(t *testing.T) {
	t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
	var cfg podmanager.Config
	if err := config.Load(&cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	cfg.ImageResolver = "https://127.0.0.1:1"
	if err := os.WriteFile(cfg.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	frame.Identity = mtlstest.NewAuthority(t, time.Hour).Identity(t, "spiffe://function-runner/pod-manager")
	components, err := podmanager.New(cfg, frame)
	if err != nil {
		t.Fatal(err)
	}
	component := components[0]
	if component.Endpoints[0].TLS == nil {
		t.Error("the port has no TLS")
	}
	server := httptest.NewServer(component.Endpoints[0].Handler)
	defer server.Close()
	client := podmanagerv1connect.NewPodManagerServiceClient(server.Client(), server.URL)
	if _, err := client.ListPools(t.Context(), new(podmanagerv1.ListPoolsRequest)); connect.CodeOf(err) !=
		connect.CodeUnauthenticated {
		t.Errorf("got %v, want %v", err, connect.CodeUnauthenticated)
	}
}
