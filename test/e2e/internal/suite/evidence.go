package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// collectNamespace keeps the objects, events and logs of a failed test. What it
// cannot get it leaves out: the test has failed already.
func (s *Suite) collectNamespace(ctx context.Context, t testing.TB, namespace string) {
	dir := filepath.Join(s.evidence, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Logf("keeping evidence: %v", err)
		return
	}
	s.collectObjects(ctx, t, namespace, dir)
	s.collectLogs(ctx, t, namespace, dir)
	t.Logf("evidence is in %s", dir)
}

// collectObjects writes one file for each kind of object in the namespace, and
// one for the nodes.
func (s *Suite) collectObjects(ctx context.Context, t testing.TB, namespace, dir string) {
	// The lists that could be had come with the error about the others.
	lists, err := s.Client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		t.Logf("listing the kinds of objects: %v", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			// Secrets have no place in a folder that is passed around.
			if resource.Name != "secrets" && strings.Contains(resource.Verbs.String(), "list") {
				s.collectResource(ctx, t, version.WithResource(resource.Name), namespace, dir)
			}
		}
	}
	s.collectResource(ctx, t, corev1.SchemeGroupVersion.WithResource("nodes"), metav1.NamespaceAll, dir)
}

func (s *Suite) collectResource(ctx context.Context, t testing.TB, resource schema.GroupVersionResource, namespace, dir string) {
	objects, err := s.objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(objects.Items) == 0 {
		return
	}
	content, err := yaml.Marshal(objects)
	if err != nil {
		t.Logf("dumping %s: %v", resource.Resource, err)
		return
	}
	keep(t, filepath.Join(dir, resource.Resource+".yaml"), content)
}

func (s *Suite) collectLogs(ctx context.Context, t testing.TB, namespace, dir string) {
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Logf("listing pods: %v", err)
		return
	}
	for _, pod := range pods.Items {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			options := &corev1.PodLogOptions{Container: container.Name}
			log, err := s.Client.CoreV1().Pods(namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			if err != nil {
				log = fmt.Appendf(nil, "no log: %v\n", err)
			}
			keep(t, filepath.Join(dir, pod.Name+"-"+container.Name+".log"), log)
		}
	}
}

// collectComponents keeps the logs of the cluster's own components. Only the
// test bed's are known.
func (s *Suite) collectComponents() {
	if s.Bed == nil {
		return
	}
	target := filepath.Join(s.evidence, "components")
	if err := os.RemoveAll(target); err != nil {
		fmt.Fprintln(os.Stderr, "keeping the components' logs:", err)
		return
	}
	logs := os.DirFS(s.Bed.Logs)
	if err := os.CopyFS(target, logs); err != nil {
		fmt.Fprintln(os.Stderr, "keeping the components' logs:", err)
	}
}

func keep(t testing.TB, path string, content []byte) {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Logf("keeping evidence: %v", err)
	}
}
