// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// disguises are the labels that network policies and Services select, and none. A nil label is removed.
var disguises = []map[string]any{
	{},
	{"app": "gateway"},
	{"app": "pod-manager"},
	{"app": "image-resolver"},
	{"app": "function-runner"},
	{"app": "porch-server"},
	{"app": nil, "fn.kpt.dev/image": "attacker"},
}

// attacker is a pod of an attacker.
type attacker struct {
	namespace, name string
	dialer          suite.Dialer
}

// attackerPods starts a pod of an attacker in each namespace that has to do with a system, and in one that has not.
// They are never ready, so that no Service leads callers to them.
func (p place) attackerPods(t *testing.T) []attacker {
	t.Helper()
	ctx, foreign := suite.Context(t), p.system+"-foreign"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreign}}
	if _, err := s.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Client.CoreV1().Namespaces().Delete(context.Background(), foreign, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	var attackers []attacker
	for _, namespace := range []string{p.system, p.functions, foreign} {
		pod := s.BarePod("attacker")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		main := &pod.Spec.Containers[0]
		main.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(1)},
		}}
		s.Create(ctx, t, namespace, pod)
		t.Cleanup(func() {
			err := s.Client.CoreV1().Pods(namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{})
			if err != nil {
				t.Error(err)
			}
		})
		// Until then its processes are of the runtime: they end, and may not have its network yet.
		runs := func(pod *corev1.Pod) bool {
			all := pod.Status.ContainerStatuses
			return len(all) > 0 && all[0].State.Running != nil
		}
		running := s.Await(ctx, t, namespace, pod.Name, runs)
		dialer := suite.Dialer{Process: suite.Processes(t, running)[0]}
		attackers = append(attackers, attacker{namespace, pod.Name, dialer})
	}
	return attackers
}

// disguise gives an attacker's pod labels, and returns them as text.
func (a attacker) disguise(t *testing.T, labels map[string]any) string {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		t.Fatal(err)
	}
	pods := s.Client.CoreV1().Pods(a.namespace)
	if _, err = pods.Patch(suite.Context(t), a.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %v", a.namespace, labels)
}

// dial connects from an attacker's pod.
func (a attacker) dial(ctx context.Context, address string) (net.Conn, error) {
	return a.dialer.DialContext(ctx, address)
}
