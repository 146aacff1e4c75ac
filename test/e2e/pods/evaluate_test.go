// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// connect returns a connection to the system, like Porch's.
func (sys *system) connect(t testing.TB) *grpc.ClientConn {
	t.Helper()
	return suite.Connect(t, sys.gateway)
}

// evaluate evaluates a function over a list.
func evaluate(ctx context.Context, conn *grpc.ClientConn, image, list string) (string, error) {
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
	return string(resp.GetResourceList()), err
}

// pools returns the pools of the system.
func pools(t testing.TB, conn *grpc.ClientConn) []*podmanagerv1.Pool {
	t.Helper()
	resp, err := podmanagerv1.NewPodManagerServiceClient(conn).ListPools(suite.Context(t),
		&podmanagerv1.ListPoolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetPools()
}

// pool returns the pool of an image; an empty one if there is none.
func pool(t testing.TB, conn *grpc.ClientConn, image string) *podmanagerv1.Pool {
	t.Helper()
	for _, pool := range pools(t, conn) {
		if pool.GetKey().GetReference() == image {
			return pool
		}
	}
	return &podmanagerv1.Pool{}
}

// retries returns how often the gateway has tried an evaluation again.
func (sys *system) retries(t testing.TB) int64 {
	t.Helper()
	host, _, _ := strings.Cut(sys.gateway, ":")
	return suite.Retries(suite.Context(t), t, host)
}

// functionPods returns the function pods in Kubernetes.
func (sys *system) functionPods(t testing.TB) []corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(sys.functions).List(suite.Context(t),
		metav1.ListOptions{LabelSelector: "fn.kpt.dev/image"})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// catalog is a function of the catalog in the open registry.
func catalog(t testing.TB, name string) string {
	return s.Registry(t, "open").Host + "/krm-functions-catalog/" + name
}
