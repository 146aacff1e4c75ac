// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// List is an input for the function set-namespace, which sets the namespace "shop" in all resources.
const List = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings
    namespace: default
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: config
  data:
    namespace: shop
`

// ServiceAddress returns the cluster IP address of a Service with a port. Tests cannot use the name of the Service,
// because they do not run in a pod.
func (s *Suite) ServiceAddress(ctx context.Context, t testing.TB, namespace, name, port string) string {
	t.Helper()
	service, err := s.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, port)
}

// Connect returns a connection with the same options as in Porch: no TLS, and messages of up to 6 MiB.
func Connect(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	return servetest.Dial(t, address,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(6<<20), grpc.MaxCallSendMsgSize(6<<20)))
}

// SetNamespace evaluates an image of the function set-namespace with [List], and checks the result.
func SetNamespace(ctx context.Context, conn grpc.ClientConnInterface, image string, options ...grpc.CallOption) error {
	request := &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(List)}
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx, request, options...)
	if err == nil && !strings.Contains(string(resp.GetResourceList()), "    namespace: shop\n") {
		return fmt.Errorf("the namespace is not set:\n%s", resp.GetResourceList())
	}
	return err
}

// Sleep evaluates an image of the function in test/functions/sleep, which sleeps for the given time.
func Sleep(ctx context.Context, conn grpc.ClientConnInterface, image string, takes time.Duration,
	options ...grpc.CallOption,
) error {
	const list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n" +
		"functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: config\n  data:\n    duration: %s\n"
	request := &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: fmt.Appendf(nil, list, takes)}
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx, request, options...)
	if err == nil && !strings.Contains(string(resp.GetResourceList()), "kind: ResourceList") {
		return fmt.Errorf("the function returned %q", resp.GetResourceList())
	}
	return err
}
