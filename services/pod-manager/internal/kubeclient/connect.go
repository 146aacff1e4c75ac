// SPDX-License-Identifier: Apache-2.0

// Package kubeclient creates clients of the Kubernetes API. It corrects for the difference between the clocks of the
// API server and this machine. It treats refusals of an API server that has just restarted as temporary.
package kubeclient

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Rate limit of requests to the API server. With the defaults of client-go, which suit interactive tools, creating
// a burst of pods would take a minute.
const (
	queriesPerSecond = 200
	burst            = 400
)

// Connect returns a client for the cluster in the kubeconfig file at path, or for this program's own cluster if path is
// empty. The client adjusts the Clock to the time in each response of the API server.
func Connect(path string, clock *Clock, log *slog.Logger) (kubernetes.Interface, error) {
	// Client-go logs through klog, for instance when its rate limit delays a request.
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := clientConfig(path, clock, log)
	if err != nil {
		return nil, err
	}
	// Use protocol buffers, because they need a fraction of the time and memory of JSON.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Kubernetes API: %w", err)
	}
	return client, nil
}

// clientConfig returns the configuration of a client. Each client has its own rate limit.
func clientConfig(path string, clock *Clock, log *slog.Logger) (*rest.Config, error) {
	config, err := restConfig(path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = queriesPerSecond, burst
	config.UserAgent = "krm-function-runner"
	config.Wrap(clock.Listen)
	config.Wrap(tolerateWarmUp)
	config.WarningHandlerWithContext = &warnings{log: log, seen: make(map[string]struct{})}
	return config, nil
}

// ConnectDynamic returns a client for custom resources, and a function that lists the resources of an API version.
func ConnectDynamic(path string, clock *Clock, log *slog.Logger) (
	dynamic.Interface, func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error), error,
) {
	config, err := clientConfig(path, clock, log)
	if err != nil {
		return nil, nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for custom resources: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for the lists of resources: %w", err)
	}
	return client, resources.ServerResourcesForGroupVersionWithContext, nil
}

// transport wraps the HTTP transport of a Kubernetes client, so that the function send handles each request.
type transport struct {
	next http.RoundTripper
	send func(*http.Request) (*http.Response, error)
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t.send(request) }

// WrappedRoundTripper returns the inner transport, so that client-go can close its idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func restConfig(path string) (*rest.Config, error) {
	if path != "" {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API (this program must run in a pod with a service account, "+
			"or be given a kubeconfig): %w", err)
	}
	return config, nil
}

// maxWarnings is the maximum number of different warnings that are logged. The texts of logged warnings stay in memory.
const maxWarnings = 100

// warnings logs warnings of the API server, for instance about a deprecated field in a pod template. It logs each
// text once, because the API server repeats it for each pod.
type warnings struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]struct{}
}

// HandleWarningHeaderWithContext logs warnings with Kubernetes' code 299. HTTP caches send warnings with other codes.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.seen[text]; seen || len(w.seen) >= maxWarnings {
		return
	}
	w.seen[text] = struct{}{}
	w.log.WarnContext(ctx, "warning of the Kubernetes API", "warning", text)
}
