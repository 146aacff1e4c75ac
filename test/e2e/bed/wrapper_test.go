// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package bed_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// porchTemplate is a function pod as in Porch's documentation, images aside, with the readiness
// probe of its manifests.
const porchTemplate = `
apiVersion: v1
kind: Pod
metadata:
  name: function
spec:
  initContainers:
    - name: copy-wrapper-server
      image: WRAPPER
      command: ["cp", "-a", "/wrapper-server/.", "/wrapper-server-tools"]
      volumeMounts:
        - {name: wrapper-server-tools, mountPath: /wrapper-server-tools}
  containers:
    - name: function
      image: FUNCTION
      command: ["/wrapper-server-tools/wrapper-server"]
      readinessProbe:
        exec:
          command: ["/wrapper-server-tools/grpc-health-probe", "-addr", "localhost:9446"]
        periodSeconds: 1
      volumeMounts:
        - {name: wrapper-server-tools, mountPath: /wrapper-server-tools}
  volumes:
    - {name: wrapper-server-tools, emptyDir: {}}
`

// TestWrapperInPorchsTemplate runs a catalog function in a pod made from Porch's own template: the
// init container has our wrapper image, and its binary is copied to the tools.
func TestWrapperInPorchsTemplate(t *testing.T) {
	host := s.Registry(t, "open").Host
	image := host + "/krm-functions-catalog/set-namespace:v0.4.5"
	resolved, err := resolver(t, resolverFiles{".dockerconfigjson": []byte("{}"), "ca.crt": authority(t)}).
		ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	template := strings.NewReplacer("WRAPPER", host+"/programs/wrapper-server:latest", "FUNCTION",
		image).Replace(porchTemplate)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(template), &pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].Args = slices.Concat([]string{"--port", "9446", "--max-request-body-size", "6291456", "--"},
		resolved.GetCommand())

	ctx, namespace := suite.Context(t), s.Namespace(t)
	s.Create(ctx, t, namespace, &pod)
	ready := s.Await(ctx, t, namespace, pod.Name, suite.Ready)
	conn := servetest.Dial(t, ready.Status.PodIP+":9446")
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{
		Image: image,
		ResourceList: []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n" +
			"- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: settings\n    namespace: default\n" +
			"functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: config\n  data:\n" +
			"    namespace: shop\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(resp.GetResourceList()), "    namespace: shop\n") {
		t.Errorf("the namespace is not set:\n%s", resp.GetResourceList())
	}
}
