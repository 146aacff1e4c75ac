// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// porchTemplate is the ConfigMap of Porch's documentation: the copying init container, the health
// probe in the tools' directory, and annotations at the wrong level.
const porchTemplate = `apiVersion: v1
kind: Pod
annotations:
  cluster-autoscaler.kubernetes.io/safe-to-evict: true
spec:
  initContainers:
    - name: copy-wrapper-server
      image: docker.io/nephio/porch-wrapper-server:latest
      command: [cp, -a, /wrapper-server/., /wrapper-server-tools]
      volumeMounts:
        - name: wrapper-server-tools
          mountPath: /wrapper-server-tools
  containers:
    - name: function
      image: image-replaced-by-kpt-func-image
      command: [/wrapper-server-tools/wrapper-server]
      readinessProbe:
        exec:
          command: [/wrapper-server-tools/grpc-health-probe, -addr, localhost:9446]
      volumeMounts:
        - name: wrapper-server-tools
          mountPath: /wrapper-server-tools
  volumes:
    - name: wrapper-server-tools
      emptyDir: {}
`

const porchServiceTemplate = `apiVersion: v1
kind: Service
spec:
  ports:
  - port: 9446
    protocol: TCP
    targetPort: 9446
  selector:
    fn.kpt.dev/image: to-be-replaced
  type: ClusterIP
`

// template creates a ConfigMap with Porch's template in the services' namespace.
func (sys *system) template(t testing.TB) *corev1.ConfigMap {
	t.Helper()
	pod := strings.ReplaceAll(porchTemplate, "docker.io/nephio/porch-wrapper-server:latest",
		s.Registry(t, "open").Host+"/programs/wrapper-server:latest")
	template := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kpt-function-eval-pod-template"},
		Data:       map[string]string{"template": pod, "serviceTemplate": porchServiceTemplate},
	}
	created, err := s.Client.CoreV1().ConfigMaps(sys.services).Create(suite.Context(t), template, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// change replaces the template's pod.
func (sys *system) change(t testing.TB, template *corev1.ConfigMap, pod string) *corev1.ConfigMap {
	t.Helper()
	template.Data["template"] = pod
	changed, err := s.Client.CoreV1().ConfigMaps(sys.services).Update(suite.Context(t), template, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestPorchTemplate runs functions in pods of the template that Porch documents. A later broken
// template changes nothing; a changed one leads to a new pod.
func TestPorchTemplate(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var template *corev1.ConfigMap
			sys := m.deploy(t, map[string]string{"FNR_TEMPLATE": "kpt-function-eval-pod-template"},
				func(sys *system) { template = sys.template(t) })
			ctx, conn := suite.Context(t), sys.connect(t)
			evaluateOnce := func(when string) corev1.Pod {
				t.Helper()
				if _, err := evaluate(ctx, conn, echo(t), conformance.List); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				return sys.livePod(t)
			}
			first := evaluateOnce("with Porch's template")
			if first.Annotations["fn.kpt.dev/template-version"] != template.ResourceVersion ||
				len(first.Spec.InitContainers) != 1 {
				t.Errorf("the pod is not made from the template: %v", first.Annotations)
			}
			good := template.Data["template"]
			for reason, broken := range map[string]string{
				"no container of that name": strings.ReplaceAll(good, "name: function", "name: other"),
				"not YAML":                  "a: b: c",
			} {
				before := time.Now()
				template = sys.change(t, template, broken)
				s.AwaitLog(t, sys.services, sys.manager, before, "pod template not changed")
				if again := evaluateOnce(reason); again.UID != first.UID {
					t.Errorf("%s: a new pod was made", reason)
				}
			}
			before := time.Now()
			template = sys.change(t, template, good)
			s.AwaitLog(t, sys.services, sys.manager, before, "pod template applied")
			if _, err := evaluate(ctx, conn, echo(t), conformance.List); err != nil {
				t.Fatalf("repaired: %v", err)
			}
			suite.Until(ctx, t, "a pod of the changed template replaces the former one", func() (bool, string) {
				live := sys.livePods(t)
				return len(live) == 1 && live[0].Annotations["fn.kpt.dev/template-version"] == template.ResourceVersion,
					strings.Join(names(live), " ")
			})
		})
	}
}

// livePods returns the function pods that are not being deleted.
func (sys *system) livePods(t testing.TB) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(sys.functionPods(t), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// livePod returns the one function pod that is not being deleted.
func (sys *system) livePod(t testing.TB) corev1.Pod {
	t.Helper()
	live := sys.livePods(t)
	if len(live) != 1 {
		t.Fatalf("there are %d pods, want one: %v", len(live), names(live))
	}
	return live[0]
}
