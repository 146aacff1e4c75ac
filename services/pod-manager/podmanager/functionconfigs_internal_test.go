// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// serveFunctionConfigs starts an API server with a FunctionConfig for each Secret. The FunctionConfig passes the Secret
// to the function that has the Secret's name. The server permits
// nothing else. serveFunctionConfigs returns the path of a kubeconfig.
func serveFunctionConfigs(t *testing.T, secrets ...string) (kubeconfig string) {
	t.Helper()
	const group = "/apis/config.porch.kpt.dev/v1alpha1"
	var items []string
	for i, secret := range secrets {
		items = append(items, fmt.Sprintf(`{"apiVersion":"config.porch.kpt.dev/v1alpha1","kind":"FunctionConfig",
			"metadata":{"name":"config-%[1]d","namespace":"functions","uid":"%[1]d","generation":1},
			"spec":{"image":%[2]q,"podExecutor":{"templateOverrides":
			{"container":{"envFrom":[{"secretRef":{"name":%[2]q}}]}}}}}`, i, secret))
	}
	answers := map[string]string{
		group: `{"kind":"APIResourceList","groupVersion":"config.porch.kpt.dev/v1alpha1",
			"resources":[{"name":"functionconfigs","kind":"FunctionConfig","namespaced":true}]}`,
		group + "/namespaces/functions/functionconfigs": `{"kind":"FunctionConfigList",
			"apiVersion":"config.porch.kpt.dev/v1alpha1","metadata":{"resourceVersion":"1"},
			"items":[` + strings.Join(items, ",") + `]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		switch query := r.URL.Query(); {
		case !ok || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		case query.Has("sendInitialEvents"): // the client then lists the objects, as at older API servers
			w.WriteHeader(http.StatusUnprocessableEntity)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
		case query.Has("watch"):
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],\n" +
		"clusters: [{name: c, cluster: {server: " + server.URL + "}}], users: [{name: u}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestFunctionsGetNoKeysOfTheIssuer reads FunctionConfigs that pass Secrets to function pods. The Secrets with keys
// that the issuer writes are refused, and other Secrets are passed.
func TestFunctionsGetNoKeysOfTheIssuer(t *testing.T) {
	cfg := Config{Namespace: "functions", DefaultImagePrefix: "example.com", Issuer: IssuerConfig{Secret: "authority"}}
	cfg.Kubeconfig = serveFunctionConfigs(t, "authority", "gateway-tls", "image-resolver-tls", "token")
	frame := servermain.Frame{Telemetry: telemetry.Discard()}
	clock := kubeclient.NewClock(frame.Telemetry.Log)
	client, err := kubeclient.Connect(cfg.Kubeconfig, clock, frame.Telemetry.Log)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := cfg.templates(client, frame)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	configured := make(chan *functionconfig.Set, 1)
	follower, err := cfg.functionConfigs(templates, func(podspec.Template) {}, func(s *functionconfig.Set) {
		select {
		case configured <- s:
		case <-ctx.Done():
		}
	}, clock, client, frame)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- follower.Run(ctx) }()
	defer func() { stop(); <-ended }()
	set := <-configured
	for image, passed := range map[string]bool{
		"authority": false, "gateway-tls": false, "image-resolver-tls": false, "token": true,
	} {
		if _, got := set.Pod(imagename.Name{Repository: "example.com/" + image, Tag: "v1"}); got != passed {
			t.Errorf("the function of the Secret %s gets it: %t, want %t", image, got, passed)
		}
	}
}
