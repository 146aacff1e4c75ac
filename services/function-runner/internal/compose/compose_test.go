// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/compose"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
)

// kubeconfig returns the kubeconfig of an empty Kubernetes, with the rights of Porch's own Role:
// none on Leases.
func kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" {
			http.Error(w, "expected a list", http.StatusBadRequest)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		if strings.Contains(r.URL.Path, "/leases") {
			forbid(w, "leases is forbidden")
			return
		}
		if r.Method == http.MethodPost {
			forbid(w, "violates PodSecurity")
			return
		}
		kinds := map[string]string{"pods": "PodList", "services": "ServiceList"}
		_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": %q, "metadata": {"resourceVersion": "1"}}`,
			kinds[path.Base(r.URL.Path)])
	})
}

// kubeconfigOf returns the kubeconfig of a Kubernetes served by a handler.
func kubeconfigOf(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + server.URL +
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// forbidding is a Kubernetes that denies everything.
func forbidding(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		forbid(w, "pods is forbidden")
	})
}

// forbid answers as Kubernetes does to a forbidden request.
func forbid(w http.ResponseWriter, why string) {
	w.WriteHeader(http.StatusForbidden)
	_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", `+
		`"code": 403, "message": %q}`, why)
}

// push puts random images into a registry.
func push(t *testing.T, images ...string) {
	t.Helper()
	for _, image := range images {
		ref, err := name.ParseReference(image)
		if err != nil {
			t.Fatal(err)
		}
		img, err := random.Image(16, 1)
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.Config(img, v1.Config{Entrypoint: []string{"/function"}}); err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img, remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConstraintsAreAnsweredByRegistries uses a version constraint on an image without a binary:
// the tag comes from the registry, and the answer has that tag and Kubernetes' reason to refuse its
// pod. All services count the failures, each with a metric of its own: the process has one page of
// metrics.
func TestConstraintsAreAnsweredByRegistries(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push(t, host+"/fns/echo:v1.0.0", host+"/fns/echo:v1.2.0", host+"/fns/echo:v2.0.0")

	t.Setenv("FNR_INSECURE_REGISTRIES", host)
	client, scrape := start(t, kubeconfig(t))
	tests := map[string]struct {
		image, tag string
		code       codes.Code
		text       string
	}{
		"match":    {host + "/fns/echo", "^1.0", codes.FailedPrecondition, "create pod echo-v120-1-"},
		"no match": {host + "/fns/echo", ">=3", codes.InvalidArgument, "there is v2.0.0, v1.2.0, v1.0.0"},
		"no such":  {host + "/fns/other", ">=1", codes.FailedPrecondition, "/fns/other"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := client.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: tc.image, Tag: tc.tag, ResourceList: []byte("kind: ResourceList\n")})
			if st := status.Convert(err); st.Code() != tc.code || !strings.Contains(st.Message(), tc.text) {
				t.Errorf("got %v, want %v and %q", err, tc.code, tc.text)
			}
		})
	}
	metrics := scrape()
	for _, counted := range []string{
		`fn_rejections_total{reason="precondition"}`,
		`fn_lease_rejections_total{reason="precondition"}`,
	} {
		if !strings.Contains(metrics, "\n"+counted) {
			t.Errorf("no %s in the metrics:\n%s", counted, metrics)
		}
	}
}

// TestRegistriesThatAreRefusedNameThisProgramsSetting asks for an image of a registry on this machine
// that no setting lists: the message names the setting of this program, not the service's own.
func TestRegistriesThatAreRefusedNameThisProgramsSetting(t *testing.T) {
	client, _ := start(t, kubeconfig(t))
	_, err := client.EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: "127.0.0.1:1/fns/echo:v1", ResourceList: []byte("kind: ResourceList\n")})
	const want = "list it in FNR_INSECURE_REGISTRIES (plain HTTP) or FNR_REGISTRY_TLS_PATHS"
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// start runs all services in one process, without local binaries, and returns a function that reads
// their metrics as well.
func start(t *testing.T, kubernetes string, flags ...string) (client evaluator.FunctionEvaluatorClient,
	scrape func() string,
) {
	t.Helper()
	measured, scrape := scrapetest.New(t)
	t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
	t.Setenv("FNR_KUBECONFIG", kubernetes)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("functions: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(append([]string{"--config", config}, flags...), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		frame.Telemetry = measured
		components, err := compose.Components(t.Context(), s, frame)
		return join(components), err
	})
	conn := servetest.Dial(t, address)
	return evaluator.NewFunctionEvaluatorClient(conn), scrape
}

// TestServesWithoutRights starts where Kubernetes forbids everything: local binaries are served,
// and requests for pods fail with the missing permission.
func TestServesWithoutRights(t *testing.T) {
	client, _ := start(t, forbidding(t)) // it is ready
	for {
		_, err := client.EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: "example.com/fn:v1", ResourceList: []byte("kind: ResourceList\n")})
		if strings.Contains(err.Error(), "pods is forbidden") && status.Code(err) == codes.FailedPrecondition {
			return
		}
		// The first request may come before Kubernetes has refused anything.
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
}

// TestServesWithoutKubernetes starts while Kubernetes is unreachable, and the pod template with it:
// local binaries are served, and requests for a pod get the reason before their deadline.
func TestServesWithoutKubernetes(t *testing.T) {
	functions := t.TempDir()
	testfn.Install(t, functions, "echo")
	config := filepath.Join(functions, "config.yaml")
	if err := os.WriteFile(config, []byte("functions: [{function: echo, images: ['example.com/echo:v1']}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	away := kubeconfigOf(t, func(w http.ResponseWriter,
		_ *http.Request,
	) {
		http.Error(w, "away", http.StatusServiceUnavailable)
	})
	// it is ready
	client, _ := start(t, away, "--config", config, "--functions", functions, "--function-pod-template", "templates")
	evaluate := func(image string, timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := client.EvaluateFunction(ctx,
			&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte("kind: ResourceList\nitems: []\n")})
		return err
	}
	if err := evaluate("example.com/echo:v1", time.Hour); err != nil {
		t.Errorf("a local binary: %v", err)
	}
	// On a busy machine, a short deadline may pass before the pod-manager answers.
	err := evaluate("example.com/fn:v1", 500*time.Millisecond)
	for timeout := 2 * time.Second; status.Code(err) == codes.DeadlineExceeded && timeout < 5*time.Minute; timeout *= 4 {
		err = evaluate("example.com/fn:v1", timeout)
	}
	if status.Code(err) != codes.Unavailable ||
		!strings.Contains(err.Error(), "cannot read function pods from the Kubernetes API") {
		t.Errorf("a function for pods: %v, want the reason", err)
	}
}

// join makes one component of several.
func join(components []serve.Component) serve.Component {
	var all serve.Component
	for _, p := range components {
		all.Endpoints = append(all.Endpoints, p.Endpoints...)
		all.Tasks = append(all.Tasks, p.Tasks...)
		if p.Ready != nil {
			all.Ready = p.Ready
		}
	}
	return all
}
