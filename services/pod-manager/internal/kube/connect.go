package kube

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// one that this program runs in if path is empty.
func Connect(path string, log *slog.Logger) (kubernetes.Interface, error) {
	// Client-go logs by itself, about watches that break for instance.
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := restConfig(path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = queriesPerSecond, burst
	config.UserAgent = "krm-function-runner"
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

// HasImageVolumes says whether pods can mount images. The API server is asked, in a
// dry run: one without them drops the field.
func HasImageVolumes(ctx context.Context, client kubernetes.Interface, namespace string, log *slog.Logger) bool {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "image-volumes-"},
		Spec: corev1.PodSpec{
			// As strict as namespaces may ask for.
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "none", Image: "none",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: "none"},
			}}},
		},
	}
	created, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		log.WarnContext(ctx, "the API server did not say whether it has image volumes", "error", err)
		return false
	}
	return len(created.Spec.Volumes) > 0 && created.Spec.Volumes[0].Image != nil
}
