//go:build e2e

package deploy_test

import (
	"context"
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
func caller(t *testing.T) evaluator.FunctionEvaluatorClient {
	t.Helper()
	service, err := s.Client.CoreV1().Services(system).Get(suite.Context(t), "function-runner", metav1.GetOptions{})
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

// evaluate has the function evaluated.
func evaluate(ctx context.Context, client evaluator.FunctionEvaluatorClient, image string, options ...grpc.CallOption) (string, error) {
	resp, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)}, options...)
	return string(resp.GetResourceList()), err
}

// evaluates checks that the system does its work.
func evaluates(t *testing.T) {
	t.Helper()
	// The Service's rules may be a moment later than its pods.
	out, err := evaluate(suite.Context(t), caller(t), setNamespace, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "    namespace: shop\n") {
		t.Errorf("the namespace is not set:\n%s", out)
	}
}
