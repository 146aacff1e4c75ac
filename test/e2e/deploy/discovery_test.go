// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// target is one that Prometheus finds, before it is relabeled.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery serves what kubernetes_sd_configs find in a namespace, with the rights of a kubeconfig:
// Debian's Prometheus is built without the Kubernetes API. It asks this server, and relabels as it always does.
func discovery(t *testing.T, kubeconfig []byte) (url string) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, err := discover(r.Context(), client, strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway) // Prometheus keeps the targets that it has
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// discover returns a target for each port of each container, and one for a container without ports.
func discover(ctx context.Context, client kubernetes.Interface, namespace string) ([]target, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := []target{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.PodIP == "" {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			labels := podLabels(pod)
			labels["__meta_kubernetes_pod_container_name"] = c.Name
			labels["__meta_kubernetes_pod_container_init"] = strconv.FormatBool(slices.ContainsFunc(pod.Spec.InitContainers,
				func(init corev1.Container) bool { return init.Name == c.Name }))
			if len(c.Ports) == 0 {
				found = append(found, target{[]string{pod.Status.PodIP}, labels})
			}
			for _, port := range c.Ports {
				number := strconv.Itoa(int(port.ContainerPort))
				found = append(found, target{[]string{net.JoinHostPort(pod.Status.PodIP, number)}, with(labels, map[string]string{
					"__meta_kubernetes_pod_container_port_name":   port.Name,
					"__meta_kubernetes_pod_container_port_number": number,
				})})
			}
		}
	}
	return found, nil
}

// unnamed are the characters that names of labels do not have.
var unnamed = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// podLabels returns the labels that all targets of a pod have.
func podLabels(pod *corev1.Pod) map[string]string {
	labels := map[string]string{
		"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name,
		"__meta_kubernetes_pod_ip": pod.Status.PodIP, "__meta_kubernetes_pod_phase": string(pod.Status.Phase),
	}
	for name, value := range pod.Labels {
		name = unnamed.ReplaceAllString(name, "_")
		labels["__meta_kubernetes_pod_label_"+name] = value
		labels["__meta_kubernetes_pod_labelpresent_"+name] = "true"
	}
	return labels
}

// with returns labels with further ones.
func with(labels, further map[string]string) map[string]string {
	all := map[string]string{}
	for _, some := range []map[string]string{labels, further} {
		for name, value := range some {
			all[name] = value
		}
	}
	return all
}
