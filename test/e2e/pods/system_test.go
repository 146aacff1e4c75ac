// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"maps"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// system is the whole system in separate namespaces.
type system struct {
	// services is the namespace of the services, and functions that of function pods.
	services, functions string
	// gateway is the address for callers, as host:port.
	gateway string
	// manager is the name of the pod of the program that manages pods.
	manager string
	// restart restarts the program that manages pods.
	restart func(t testing.TB)
}

// mode is a way to deploy the system.
type mode struct {
	name   string
	deploy func(t testing.TB, env map[string]string, prepare ...func(*system)) *system
}

// modes are all modes.
var modes = []mode{{"microservices", microservices}, {"function-runner", functionRunner}}

// eachMode runs a test on the system deployed in each mode.
func eachMode(t *testing.T, env map[string]string, test func(t *testing.T, sys *system)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			test(t, m.deploy(t, env))
		})
	}
}

// newSystem creates the namespaces, and an account with the necessary rights.
func newSystem(t testing.TB, configMapVerbs []string, prepare []func(*system)) *system {
	t.Helper()
	ctx := suite.Context(t)
	sys := &system{services: s.Namespace(t), functions: s.Namespace(t)}
	functions, err := s.Client.CoreV1().Namespaces().Get(ctx, sys.functions, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	functions.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if _, err := s.Client.CoreV1().Namespaces().Update(ctx, functions, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	sys.allow(t, sys.functions, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods", "services"},
		Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	})
	sys.allow(t, sys.functions, rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"get", "list", "create", "update", "delete"},
	})
	sys.allow(t, sys.functions, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"get", "create", "update"},
	})
	sys.allow(t, sys.services, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: configMapVerbs,
	})
	for _, do := range prepare {
		do(sys)
	}
	return sys
}

// allow grants the services rights in a namespace.
func (sys *system) allow(t testing.TB, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	ctx := suite.Context(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: rule.Resources[0]}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := s.Client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: sys.services}},
	}
	if _, err := s.Client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// program is the pod of one of the project's programs. It is ready when it serves.
func (sys *system) program(t testing.TB, name string, port int32, env map[string]string, args ...string) *corev1.Pod {
	t.Helper()
	pod := suite.Pod(name, s.Program(t, suite.Current, name), args...)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	container := &pod.Spec.Containers[0]
	container.Resources = deployed(t, name)
	for key, value := range with(map[string]string{"FNR_SERVE_DRAIN_DELAY": "1s"}, env) {
		container.Env = append(container.Env, corev1.EnvVar{Name: key, Value: value})
	}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}},
		PeriodSeconds: 1,
	}
	return pod
}

// start runs a pod and returns it when it is ready.
func (sys *system) start(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	ctx := suite.Context(t)
	s.Create(ctx, t, sys.services, pod)
	return s.Await(ctx, t, sys.services, pod.Name, suite.Ready)
}

// with returns the variables of both maps.
func with(env map[string]string, more map[string]string) map[string]string {
	env = maps.Clone(env)
	maps.Copy(env, more)
	return env
}

// podSettings are the settings of function pods, by the variables of pod-manager.
func (sys *system) podSettings(t testing.TB, env map[string]string) map[string]string {
	return with(map[string]string{
		"WRAPPER_SERVER_IMAGE": s.Program(t, suite.Current, "wrapper-server"),
		"FNR_NAMESPACE":        sys.functions,
	}, env)
}

// microservices deploys each service as a separate pod.
func microservices(t testing.TB, env map[string]string, prepare ...func(*system)) *system {
	t.Helper()
	sys := newSystem(t, []string{"get", "list", "watch"}, prepare)
	resolver := sys.start(t, sys.program(t, "image-resolver", 9449, resolverSettings(t)))
	settings := sys.podSettings(t,
		with(map[string]string{"FNR_IMAGE_RESOLVER": "http://" + resolver.Status.PodIP + ":9449"}, env))
	manager := mountCacheConfig(sys.program(t, "pod-manager", 9448, settings))
	service := sys.service(t, manager, 9448)
	sys.manager = sys.start(t, manager.DeepCopy()).Name
	gateway := sys.start(t, sys.program(t, "gateway", 9445, map[string]string{
		"FNR_DISABLE_RUNTIMES": "exec",
		"FNR_IMAGE_RESOLVER":   "http://" + resolver.Status.PodIP + ":9449",
		"FNR_POD_MANAGER":      "http://" + service + ":9448",
	}))
	sys.gateway = gateway.Status.PodIP + ":9445"
	sys.restart = func(t testing.TB) { sys.manager = sys.recreate(t, manager).Name }
	return sys
}

// service creates a headless Service for the replicas of a pod, and returns its name.
func (sys *system) service(t testing.TB, pod *corev1.Pod, port int32) string {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: pod.Labels,
			Ports: []corev1.ServicePort{{Port: port}},
		},
	}
	if _, err := s.Client.CoreV1().Services(sys.services).Create(suite.Context(t), service,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return pod.Name + "." + sys.services + ".svc.cluster.local"
}

// resolverSettings are the settings of the image-resolver: the bed's registries without TLS, and
// the open one as the catalog's.
func resolverSettings(t testing.TB) map[string]string {
	t.Helper()
	open, private := s.Registry(t, "open").Host, s.Registry(t, "private").Host
	return map[string]string{"FNR_INSECURE_REGISTRIES": open + "," + private, "FNR_MIRRORS": "ghcr.io=" + open}
}

// functionRunner deploys everything in one process.
func functionRunner(t testing.TB, env map[string]string, prepare ...func(*system)) *system {
	t.Helper()
	// These verbs are in the Role that Porch publishes.
	sys := newSystem(t, []string{"get", "list"}, prepare)
	settings := with(sys.podSettings(t, env), resolverSettings(t))
	runner := mountCacheConfig(sys.program(t, "function-runner", 9445, settings, "--disable-runtimes=exec"))
	use := func(pod *corev1.Pod) {
		sys.manager = pod.Name
		sys.gateway = pod.Status.PodIP + ":9445"
	}
	use(sys.start(t, runner.DeepCopy()))
	sys.restart = func(t testing.TB) { use(sys.recreate(t, runner)) }
	return sys
}
