// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// restricted checks pods as an API server does for a namespace that enforces it.
func restricted(t *testing.T, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(level, meta, spec) {
		if !result.Allowed {
			t.Errorf("%s: %s (%s)", meta.Name, result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

func TestPodsAreRestricted(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			restricted(t, &metav1.ObjectMeta{Name: d.Name, Labels: d.Spec.Template.Labels}, &d.Spec.Template.Spec)
		}
	})
}

// podIn returns the pod in the first document of a file.
func podIn(t *testing.T, file string) corev1.Pod {
	t.Helper()
	content, _, _ := strings.Cut(string(mustRead(t, filepath.Join(root, file))), "\n---\n")
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(content), &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// podTemplates are the templates of function pods in components.
var podTemplates = []string{"deploy/components/pod-template/pod.yaml", "deploy/components/openshift/pod.yaml"}

func TestTemplateOfFunctionPods(t *testing.T) {
	for _, file := range podTemplates {
		pod := podIn(t, file)
		restricted(t, &pod.ObjectMeta, &pod.Spec)
		if c := pod.Spec.Containers[0]; c.Name != "function" || len(c.Command) == 0 || len(c.Args) > 0 {
			t.Errorf("%s: the first container must be %q, start the wrapper server and leave arguments to the pod-manager: %+v",
				file, "function", c)
		}
	}
}

// TestTemplatesHaveTheSizesOfTheBuiltInOne checks that function pods neither shrink nor grow when a component with a
// template is added. The init container may request less, because a pod requests the maximum of its containers.
func TestTemplatesHaveTheSizesOfTheBuiltInOne(t *testing.T) {
	want := podIn(t, "services/pod-manager/internal/podspec/builtin.yaml").Spec
	for _, file := range podTemplates {
		got := podIn(t, file).Spec
		if diff := gocmp.Diff(want.Containers[0].Resources, got.Containers[0].Resources); diff != "" {
			t.Errorf("%s: resources of functions (-built-in, +component):\n%s", file, diff)
		}
		if diff := gocmp.Diff(want.Volumes, got.Volumes); diff != "" {
			t.Errorf("%s: volumes (-built-in, +component):\n%s", file, diff)
		}
		for name, request := range got.InitContainers[0].Resources.Requests {
			if limit := want.Containers[0].Resources.Requests[name]; request.Cmp(limit) > 0 {
				t.Errorf("%s: the init container requests %s of %s, and functions %s", file, &request, name, &limit)
			}
		}
	}
}

func TestPodsAreProbedAndDrained(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			spec := d.Spec.Template.Spec
			c := spec.Containers[0]
			ports := map[int32]bool{}
			for _, p := range c.Ports {
				ports[p.ContainerPort] = true
			}
			for name, probe := range map[string]*corev1.Probe{
				"startup": c.StartupProbe, "readiness": c.ReadinessProbe,
				"liveness": c.LivenessProbe,
			} {
				if probe == nil || probe.GRPC == nil || !ports[probe.GRPC.Port] {
					t.Errorf("%s: the %s probe asks no port of the container: %+v", d.Name, name, probe)
				}
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
				c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: resources are missing: %+v", d.Name, c.Resources)
			}
			const flush = 5 * time.Second // for telemetry, at the end
			need := serve.LongestDrain*duration(t, c, "FNR_SERVE_DRAIN_DELAY") +
				duration(t, c, "FNR_SERVE_SHUTDOWN_TIMEOUT") + flush
			if grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; grace < need {
				t.Errorf("%s is killed after %v, but may need %v", d.Name, grace, need)
			}
		}
	})
}

func duration(t *testing.T, c corev1.Container, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(variable(c, name))
	if err != nil {
		t.Errorf("%s: %s: %v", c.Name, name, err)
	}
	return d
}

func TestOnlyPodManagersHaveAToken(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			mounted := d.Spec.Template.Spec.AutomountServiceAccountToken
			if needs := d.Name == "pod-manager" || d.Name == "function-runner"; needs == (mounted != nil && !*mounted) {
				t.Errorf("%s: automountServiceAccountToken is %v", d.Name, mounted)
			}
		}
	})
}
