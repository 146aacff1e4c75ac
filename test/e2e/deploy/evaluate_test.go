//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// setNamespace is a function that runners bring along as a local binary.
const setNamespace = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"

// inPod is the same function under a name for which no runner has a binary.
func inPod(t *testing.T) string {
	t.Helper()
	return openRegistry(t).Host + "/krm-functions-catalog/set-namespace:v0.4.5"
}

// list is a resource list in which setNamespace has something to do.
const list = `apiVersion: config.kubernetes.io/v1
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

// caller calls the function runner as Porch does, by its Service's address. (Names are
// for pods: tests are not one.)
func (p place) caller(t *testing.T) evaluator.FunctionEvaluatorClient {
	t.Helper()
	service, err := s.Client.CoreV1().Services(p.system).Get(suite.Context(t), "function-runner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(service.Spec.ClusterIP+":9445", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return evaluator.NewFunctionEvaluatorClient(conn)
}

// evaluate has a function evaluated.
func evaluate(ctx context.Context, client evaluator.FunctionEvaluatorClient, image string, options ...grpc.CallOption) error {
	resp, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)}, options...)
	if err == nil && !strings.Contains(string(resp.GetResourceList()), "    namespace: shop\n") {
		return fmt.Errorf("the namespace is not set:\n%s", resp.GetResourceList())
	}
	return err
}

// evaluates checks that the system evaluates a function.
func (p place) evaluates(t *testing.T, image string) {
	t.Helper()
	// The Service's rules may be a moment later than its pods.
	if err := evaluate(suite.Context(t), p.caller(t), image, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
}
