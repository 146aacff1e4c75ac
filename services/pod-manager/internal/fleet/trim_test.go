// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/apitest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

// configure changes the settings of all replicas, and of later ones.
func (w *world) configure(change func(*manager.Settings)) {
	w.mu.Lock()
	w.changes = append(w.changes, change)
	replicas := w.replicas
	w.mu.Unlock()
	for _, r := range replicas {
		r.Configure(change)
	}
}

// podTemplate is the ConfigMap that all replicas make pods from.
func podTemplate() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-template", Namespace: "fns"},
		Data: map[string]string{"template": `
apiVersion: v1
kind: Pod
spec:
  containers:
  - {name: function, command: [/wrapper-server-tools/wrapper-server]}
`},
	}
}

// changeTemplate makes pods outdated that are created before a replica notices.
func (w *world) changeTemplate() {
	w.server.Change("configmaps", "pod-template", func(o apitest.Object) {
		o.SetAnnotations(map[string]string{"changed": w.now().String()})
	})
}

// TestTrimmingSparesPodsInUseElsewhere is row 3: callers do not reach the owner of their function,
// so another replica lends its pods; the owner has a reason to delete some.
func TestTrimmingSparesPodsInUseElsewhere(t *testing.T) {
	tests := map[string]struct {
		because string
		happens func(w *world)
	}{
		"lower limit": {"two pods are more than the limit", func(w *world) {
			w.configure(func(s *manager.Settings) { s.Defaults.MaxPods = 1 })
		}},
		"template": {"both pods are outdated", func(w *world) {
			w.changeTemplate()
		}},
		"sick pod": {"a pod is drained, and is in use no more", func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, p := range w.pods {
				p.silent = true
				return
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Limits.MaxWaitlistLength = 1
			simulate(t, s, func(w *world) {
				w.load(1, time.Second, 8*time.Second, 30*time.Second) // eight callers at a time: two pods
				w.owner(image(0)).silent.Store(true)
				w.load(1, time.Second, 8*time.Second, 30*time.Second)
				tc.happens(w)
				w.load(1, time.Second, 8*time.Second, 3*time.Minute)
				for _, d := range w.inUse() {
					t.Errorf("%s: after %s %s deleted %s, which holds %d leases", tc.because, d.at, d.by, d.pod, d.leases)
				}
				for _, r := range w.replicas {
					r.silent.Store(false)
				}
				wait(5 * time.Minute)
				if n := len(w.server.Pods()); n > 0 {
					t.Errorf("%s, and %d pods are left in the end", tc.because, n)
				}
			})
		})
	}
}
