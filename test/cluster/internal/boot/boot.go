// SPDX-License-Identifier: Apache-2.0

// Package boot waits until a new cluster can run pods, and creates the objects that every cluster needs.
package boot

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
)

const (
	// bootTimeout is the time limit from the start of the cluster's processes until a pod has run.
	bootTimeout = 3 * time.Minute
	// interval is the time between two checks of a condition, such as a response of the API server.
	interval = 100 * time.Millisecond
)

// Access returns a client configuration for programs outside of the cluster's network, such as this command. Clients
// connect to the API server by the dialer, which opens connections inside the cluster's network.
func Access(l layout.Layout, dialer space.Dialer) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s: %w", l.Name, err)
	}
	config.Dial = dialer.DialContext
	// Ignore configured proxies, because they cannot reach the cluster's network.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.QPS = -1
	return rest.AddUserAgent(config, "cluster-up"), nil
}

// Client returns a client of the cluster's API for programs outside of the cluster's network.
func Client(l layout.Layout, dialer space.Dialer) (kubernetes.Interface, error) {
	config, err := Access(l, dialer)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of cluster %s: %w", l.Name, err)
	}
	return client, nil
}

// Wait creates the objects that every cluster needs, and runs a pod to show that the cluster works. It logs each step.
// The caller must push the pod's images and then close the channel images. Wait starts the pod only after this.
func Wait(ctx context.Context, log io.Writer, client kubernetes.Interface, images <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	start := time.Now()
	for _, step := range []struct {
		done string
		run  func(context.Context, kubernetes.Interface) error
	}{
		{"the API server answers", waitForAPI},
		{"pods find the name server", serveDNS},
		{"the node is ready", waitForNode},
		// Wait for the images: without them, a pull would fail, and the node would wait before it tries again.
		{"there are images for pods", func(ctx context.Context, _ kubernetes.Interface) error { return await(ctx, images) }},
		{"a pod has run", runPod},
	} {
		if err := step.run(ctx, client); err != nil {
			return err
		}
		fmt.Fprintf(log, "%s after %.1fs\n", step.done, time.Since(start).Seconds())
	}
	return nil
}

// pollUntil calls the given function repeatedly until it returns nil. If ctx ends first, pollUntil returns the
// function's last error, which explains the delay.
func pollUntil(ctx context.Context, what string, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)", what, err, ctx.Err())
		case <-time.After(interval):
		}
	}
}

// await waits until the channel is closed, that is, until the images are pushed.
func await(ctx context.Context, images <-chan struct{}) error {
	select {
	case <-images:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for images: %w", context.Cause(ctx))
	}
}
