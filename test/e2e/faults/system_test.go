//go:build e2e

package faults_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// The namespaces of the manifests.
const (
	services  = "porch-system"
	functions = "porch-fn-system"
)

// idLabel has the name of a function pod's Service.
const idLabel = "fn.kpt.dev/image"

var s *suite.Suite

func TestMain(m *testing.M) {
	// Tests wait for the cluster most of the time, not for processors.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// system is the deployed system.
type system struct {
	programs         []string
	pods             map[string]*corev1.Pod // by program
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

// functionRunner deploys everything in one process.
func functionRunner(t *testing.T) *system {
	t.Helper()
	sys := deploy(t, "function-runner", "function-runner")
	sys.gateway = suite.Connect(t, sys.pods["function-runner"].Status.PodIP+":9445")
	sys.manager = sys.gateway
	return sys
}

// deploy deploys a system of testdata, in which there are these programs.
func deploy(t *testing.T, name string, programs ...string) *system {
	t.Helper()
	ctx := suite.Context(t)
	t.Cleanup(func() { remove(t) })
	objects := suite.Build(t, filepath.Join("testdata", name))
	s.Install(ctx, t, suite.Rewrite(t, objects, func(document string) string { return s.OwnImages(t, suite.Current, document) })...)
	sys := &system{programs: programs, pods: make(map[string]*corev1.Pod)}
	for _, name := range programs {
		sys.pods[name] = podOf(ctx, t, name)
	}
	return sys
}

// remove removes the system.
func remove(t *testing.T) {
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	// Whoever makes function pods goes before them.
	s.RemoveNamespace(ctx, t, services)
	s.RemoveNamespace(ctx, t, functions)
}

// podOf is the one pod of a program.
func podOf(ctx context.Context, t testing.TB, name string) *corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(services).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("there are %d pods of %s, want one: %v", len(pods.Items), name, err)
	}
	return &pods.Items[0]
}
