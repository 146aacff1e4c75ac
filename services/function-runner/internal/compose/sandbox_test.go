// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package compose_test

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/services/function-runner/machine/machinetest"
)

// TestImageRunsInASandbox evaluates the function of an image in a registry, without Kubernetes.
func TestImageRunsInASandbox(t *testing.T) {
	registry := machinetest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	t.Setenv("FNR_SANDBOX", "bubblewrap")
	t.Setenv("FNR_SANDBOX_STORE", filepath.Join(machinetest.SharedDir(t), "store"))
	t.Setenv("FNR_IMAGE_RESOLVER_INSECURE_REGISTRIES", registry.Host)
	client, _ := start(t, "", "--disable-runtimes=pod", "--default-image-prefix="+registry.Host+"/fn")
	evaluate := func(image string) error {
		_, err := client.EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte("kind: ResourceList\n")})
		return err
	}
	for _, image := range []string{"echo:v1", registry.Host + "/fn/echo:v1"} {
		if err := evaluate(image); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
	err := evaluate("missing:v1")
	if st := status.Convert(err); st.Code() != codes.FailedPrecondition ||
		!strings.HasPrefix(st.Message(), "unable to get the sandbox for missing:v1: ") {
		t.Errorf("error %v, want one of the registry", err)
	}
}
