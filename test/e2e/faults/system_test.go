// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	imageAnnotation = "krm-function-runner.github.io/image-reference"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	// Tests wait for the cluster most of the time, not for processors. More parallel tests would
	// start more pods at a time than a small machine can.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// deployment is a way to deploy the system.
type deployment struct {
	name string // of the directory in testdata
	// programs are the running programs: a second one of the same program has a number.
	programs []string
	// calls and pools are the program:port for calls, and for the list of pools.
	calls, pools string
}

// These ways to deploy differ in everything that matters for faults: the number of processes, the
// source of templates, and whether function pods have Services.
var (
	microservices = deployment{
		name: "microservices", programs: []string{"gateway", "pod-manager", "image-resolver"},
		calls: "gateway:9445", pools: "pod-manager:9448",
	}
	functionRunner = deployment{
		name: "function-runner", programs: []string{"function-runner"},
		calls: "function-runner:9445", pools: "function-runner:9445",
	}
	twoPodManagers = deployment{
		name: "two-pod-managers", programs: []string{"gateway", "pod-manager", "pod-manager 2", "image-resolver"},
		// The gateway knows the pools of both.
		calls: "gateway:9445", pools: "gateway:9445",
	}
)

// system is a deployed system.
type system struct {
	deployment
	// services is the namespace of the services, and functions that of function pods.
	services, functions string
	// pods are the pods of its programs, by the program's name.
	pods             map[string]*corev1.Pod
	gateway, manager *grpc.ClientConn
	// abandoned is the Service of a pod that is not needed any more.
	abandoned string
}

// deploy deploys a system in separate namespaces, with replacements in the text of its manifests.
func deploy(t *testing.T, d deployment, words ...string) *system {
	t.Helper()
	ctx := suite.Context(t)
	const services, functions = "porch-system", "porch-fn-system" // in the manifests
	sys := &system{deployment: d, services: services + "-" + d.name, functions: functions + "-" + d.name}
	t.Cleanup(func() { sys.remove(t) })
	here := strings.NewReplacer(append(words, services, sys.services, functions, sys.functions,
		"cpu: 100m", "cpu: 1m")...) // in the template: all pods share two processors
	objects := suite.Build(t, filepath.Join("testdata", d.name))
	s.Install(ctx, t, suite.Rewrite(t, objects, func(document string) string {
		return s.OwnImages(t, suite.Current, here.Replace(document))
	})...)
	sys.pods = sys.running(ctx, t)
	for _, name := range d.programs {
		if sys.pods[name] == nil || len(sys.pods) != len(d.programs) {
			t.Fatalf("the system's programs are %v, want %v", sys.pods, d.programs)
		}
	}
	sys.gateway = sys.connect(t, d.calls)
	sys.manager = sys.connect(t, d.pools)
	return sys
}

// connect returns a connection to a program:port.
func (sys *system) connect(t *testing.T, to string) *grpc.ClientConn {
	t.Helper()
	name, port, _ := strings.Cut(to, ":")
	return suite.Connect(t, net.JoinHostPort(sys.pods[name].Status.PodIP, port))
}

// remove removes the system.
func (sys *system) remove(t *testing.T) {
	// The programs that create function pods are deleted before the pods.
	s.RemoveNamespace(t, sys.services)
	s.RemoveNamespace(t, sys.functions)
}

// running returns the pods of the system's programs.
func (sys *system) running(ctx context.Context, t testing.TB) map[string]*corev1.Pod {
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
