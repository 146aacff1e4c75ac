// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Rates of requests to the API server. Client-go's own are for tools that a person
// uses; a burst of pods would take a minute.
const (
	queriesPerSecond = 200
	burst            = 400
)

// Connect returns a client for the cluster that a kubeconfig file names, or for the
// one that this program runs in if path is empty. Each answer sets the clock.
func Connect(path string, clock *Clock, log *slog.Logger) (kubernetes.Interface, error) {
	// Client-go logs by itself, about waiting for its own rate limit for instance.
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := restConfig(path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = queriesPerSecond, burst
	config.UserAgent = "krm-function-runner"
	config.Wrap(clock.Listen)
	config.Wrap(toleratingWarmUp)
	config.WarningHandlerWithContext = newWarnings(log)
	// Protocol buffers take a fraction of the time and memory of JSON.
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Kubernetes API: %w", err)
	}
	return client, nil
}

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
		return nil, fmt.Errorf("find the Kubernetes API (this program has to run in a pod with a service account, or be given a kubeconfig): %w", err)
	}
	return config, nil
}
