// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package compose_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/compose"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// TestImageRunsInASandbox evaluates the function of an image in a registry, without Kubernetes.
func TestImageRunsInASandbox(t *testing.T) {
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	t.Setenv("FNR_SANDBOX", "bubblewrap")
	t.Setenv("FNR_SANDBOX_STORE", filepath.Join(localrunnertest.SharedDir(t), "store"))
	t.Setenv("FNR_INSECURE_REGISTRIES", registry.Host)
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

// TestDisabledSandboxRunsNothing disables sandboxes on a machine that has a launcher.
func TestDisabledSandboxRunsNothing(t *testing.T) {
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	store := filepath.Join(localrunnertest.SharedDir(t), "store")
	t.Setenv("FNR_SANDBOX", "bubblewrap")
	t.Setenv("FNR_SANDBOX_STORE", store)
	t.Setenv("FNR_INSECURE_REGISTRIES", registry.Host)
	client, _ := start(t, "", "--disable-runtimes=pod,sandbox")
	_, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
		Image: registry.Host + "/fn/echo:v1", ResourceList: []byte("kind: ResourceList\n"),
	})
	if status.Code(err) != codes.NotFound {
		t.Errorf("error %v, want that no evaluator serves the image", err)
	}
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store was made, %v", err)
	}
}

// TestSandboxesOpenToTheNetworkAreWarnedOf starts a program that runs any image, on loopback and on all addresses.
func TestSandboxesOpenToTheNetworkAreWarnedOf(t *testing.T) {
	for address, want := range map[string]bool{"localhost:0": false, ":0": true} {
		t.Run(address, func(t *testing.T) {
			t.Setenv("FNR_ADDRESS", address)
			t.Setenv("FNR_SANDBOX", "bubblewrap")
			t.Setenv("FNR_SANDBOX_STORE", filepath.Join(localrunnertest.SharedDir(t), "store"))
			s, err := settings.Load([]string{"--disable-runtimes=exec,pod"}, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			var log string // of the start: other goroutines log later
			servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
				var lines bytes.Buffer
				former := frame.Telemetry.Log
				frame.Telemetry.Log = slog.New(slog.NewTextHandler(&lines, nil))
				components, err := compose.Components(t.Context(), s, frame)
				log = lines.String()
				frame.Telemetry.Log = former
				return join(components), err
			})
			if got := strings.Contains(log, "sandboxes open to the network"); got != want {
				t.Errorf("warned: %v, want %v:\n%s", got, want, log)
			}
		})
	}
}
