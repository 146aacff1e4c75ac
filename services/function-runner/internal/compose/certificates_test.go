// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// TestFunctionRunnerWithoutItsSecret evaluates in a pod, with the right to the Secret of the authority and without:
// pods are created in both cases, with certificates and without, and the metric says which.
func TestFunctionRunnerWithoutItsSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		granted   bool
		certified string
	}{
		"with the right":    {true, "\nfn_pods_certified 1"},
		"without the right": {false, "\nfn_pods_certified 0"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
			defer server.Close()
			image := strings.TrimPrefix(server.URL, "http://") + "/fns/echo:v1"
			push(t, image)
			t.Setenv("FNR_INSECURE_REGISTRIES", strings.TrimPrefix(server.URL, "http://"))
			t.Setenv("FNR_ISSUER_SECRET", "function-runner-authority")
			created := make(chan string, 100)
			client, scrape := start(t, kubeconfigOf(t, withSecrets(tc.granted, created)))
			_, err := client.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte("kind: ResourceList\n")})
			if !strings.Contains(err.Error(), "create pod echo-v1-1-") {
				t.Fatalf("got %v: no pod was to be created", status.Convert(err))
			}
			// The API rejects pods, so that the first one has all that is to see.
			if pod := <-created; strings.Contains(pod, "--tls-authorities=") != tc.granted {
				t.Errorf("the pod is %s", pod)
			}
			if metrics := scrape(); !strings.Contains(metrics, tc.certified) {
				t.Errorf("no %q in the metrics:\n%s", tc.certified, metrics)
			}
		})
	}
}

// withSecrets is an empty Kubernetes that rejects pods, and sends them to created. It has no Secret, and permits to
// create one or forbids all with Secrets.
func withSecrets(granted bool, created chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		secret := strings.Contains(r.URL.Path, "/secrets")
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			http.Error(w, "expected a list", http.StatusBadRequest)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		case strings.Contains(r.URL.Path, "/leases") || (secret && !granted):
			forbid(w, "this is forbidden")
		case secret && r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound"}`)
		case secret:
			_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Secret"}`)
		case r.Method == http.MethodPost:
			if strings.HasSuffix(r.URL.Path, "/pods") {
				created <- string(body)
			}
			forbid(w, "violates PodSecurity")
		default:
			kinds := map[string]string{"pods": "PodList", "services": "ServiceList"}
			_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": %q, "metadata": {"resourceVersion": "1"}}`,
				kinds[path.Base(r.URL.Path)])
		}
	}
}
