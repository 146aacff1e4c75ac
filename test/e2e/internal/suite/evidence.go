// SPDX-License-Identifier: Apache-2.0

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

	"github.com/krm-function-runner/function-runner/test/internal/dump"
)

// collectNamespace saves the objects, events and logs in a namespace after a failed test. It logs errors instead of
// returning them, because the test has already failed.
func (s *Suite) collectNamespace(ctx context.Context, t testing.TB, namespace string) {
	dir := filepath.Join(s.evidence, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Logf("keep evidence: %v", err)
		return
	}
	all := dump.Cluster{Kinds: s.Client.Discovery(), Objects: s.objects}
	if err := all.Namespace(ctx, namespace, dir); err != nil {
		t.Logf("keep evidence: %v", err)
	}
	s.collectLogs(ctx, t, namespace, dir)
	t.Logf("evidence is in %s", dir)
}

func (s *Suite) collectLogs(ctx context.Context, t testing.TB, namespace, dir string) {
	pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Logf("list pods: %v", err)
		return
	}
	for _, pod := range pods.Items {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			options := &corev1.PodLogOptions{Container: container.Name}
			log, err := s.Client.CoreV1().Pods(namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			if err != nil {
				log = fmt.Appendf(nil, "no log: %v\n", err)
			}
			writeEvidence(t, filepath.Join(dir, pod.Name+"-"+container.Name+".log"), log)
		}
	}
}

// collectComponents saves the logs of the cluster's components after a failed test. Outside of the test bed, it
// does nothing, because it cannot find the logs.
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

func writeEvidence(t testing.TB, path string, content []byte) {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Logf("keep evidence: %v", err)
	}
}
