//go:build e2e

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// appLabel has the name of a program of the system.
	appLabel = "app"
	// idLabel has the name of a function pod's Service, and imageAnnotation the image.
	idLabel         = "fn.kpt.dev/image"
	imageAnnotation = "fn.kpt.dev/image-reference"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	// Tests wait for the cluster most of the time, not for processors.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// system is a deployed system.
type system struct {
	// services is the namespace of the services, and functions that of function pods.
	services, functions string
	// pods are those of its programs, by the program's name. A second one of the same
	// program has a number.
	pods             map[string]*corev1.Pod
	gateway, manager *grpc.ClientConn
}

// microservices deploys each service by itself.
func microservices(t *testing.T) *system {
	t.Helper()
	sys := deploy(t, "microservices", "gateway", "pod-manager", "image-resolver")
	sys.gateway = suite.Connect(t, sys.pods["gateway"].Status.PodIP+":9445")
	sys.manager = suite.Connect(t, sys.pods["pod-manager"].Status.PodIP+":9448")
	return sys
}

// twoPodManagers deploys the same with two pod-managers. The gateway knows the pools of
// both.
func twoPodManagers(t *testing.T) *system {
	t.Helper()
	sys := deploy(t, "two-pod-managers", "gateway", "pod-manager", "pod-manager 2", "image-resolver")
	sys.gateway = suite.Connect(t, sys.pods["gateway"].Status.PodIP+":9445")
	sys.manager = sys.gateway
	return sys
}

// functionRunner deploys everything in one process.
func functionRunner(t *testing.T) *system {
	t.Helper()
	sys := deploy(t, "function-runner", "function-runner")
	sys.gateway = suite.Connect(t, sys.pods["function-runner"].Status.PodIP+":9445")
	sys.manager = sys.gateway
	return sys
}

// deploy deploys a system of testdata, in which there are these programs, in namespaces
// of its own.
func deploy(t *testing.T, name string, programs ...string) *system {
	t.Helper()
	ctx := suite.Context(t)
	const services, functions = "porch-system", "porch-fn-system" // in the manifests
	sys := &system{services: services + "-" + name, functions: functions + "-" + name}
	t.Cleanup(func() { sys.remove(t) })
	here := strings.NewReplacer(services, sys.services, functions, sys.functions)
	objects := suite.Build(t, filepath.Join("testdata", name))
	s.Install(ctx, t, suite.Rewrite(t, objects, func(document string) string {
		return s.OwnImages(t, suite.Current, here.Replace(document))
	})...)
	sys.pods = sys.programs(ctx, t)
	for _, name := range programs {
		if sys.pods[name] == nil || len(sys.pods) != len(programs) {
			t.Fatalf("the system's programs are %v, want %v", sys.pods, programs)
		}
	}
	return sys
}

// remove removes the system.
func (sys *system) remove(t *testing.T) {
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	// Whoever makes function pods goes before them.
	s.RemoveNamespace(ctx, t, sys.services)
	s.RemoveNamespace(ctx, t, sys.functions)
}

// programs finds the pods of the system's programs.
func (sys *system) programs(ctx context.Context, t testing.TB) map[string]*corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(sys.services).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]*corev1.Pod)
	for i, pod := range pods.Items {
		name := pod.Labels[appLabel]
		for number := 2; found[name] != nil; number++ {
			name = fmt.Sprintf("%s %d", pod.Labels[appLabel], number)
		}
		found[name] = &pods.Items[i]
	}
	return found
}
