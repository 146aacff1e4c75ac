// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	w.server.Change("configmaps", "pod-template", func(o Object) {
		o.SetAnnotations(map[string]string{"changed": w.now().String()})
	})
}
