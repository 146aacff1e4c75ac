// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package localrunner_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// evaluate evaluates the function of an image once, on a runner of its own.
func evaluate(t *testing.T, offline bool, image string) error {
	t.Helper()
	client, stop := start(t, offline)
	_, err := client.EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte("kind: ResourceList\n")})
	stop()
	return err
}

// start starts a runner with the settings of the environment, and connects to it.
func start(t testing.TB, offline bool) (client evaluator.FunctionEvaluatorClient, stop func()) {
	t.Helper()
	settings, err := localrunner.Load()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := localrunner.Start(t.Context(), localrunner.Config{Settings: settings, Offline: offline})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:runner", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return runner.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return evaluator.NewFunctionEvaluatorClient(conn), func() {
		_ = conn.Close()
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	}
}

// setUp has the environment of a machine with a store of its own.
func setUp(t testing.TB) {
	t.Helper()
	t.Setenv("FNR_SANDBOX_STORE", filepath.Join(localrunnertest.SharedDir(t), "store"))
	t.Setenv("FNR_POD_MANAGER", "http://localhost:9448") // it is another program's
	t.Setenv("DOCKER_CONFIG", t.TempDir())
}

// TestPrivateImageRunsWithAndWithoutItsRegistry runs an image of a registry with a password and an authority
// of its own, and again after the registry has gone.
func TestPrivateImageRunsWithAndWithoutItsRegistry(t *testing.T) {
	setUp(t)
	registry := localrunnertest.Private(t)
	registry.Push(t, "fn/echo:v1", "echo")
	authority := t.TempDir()
	write(t, filepath.Join(authority, "ca.crt"), string(registry.Authority()))
	t.Setenv("FNR_REGISTRY_TLS_PATHS", registry.Host+"="+authority)
	image := registry.Host + "/fn/echo:v1"
	if err := evaluate(t, false, image); status.Code(err) != codes.FailedPrecondition ||
		!strings.Contains(err.Error(), "401") {
		t.Errorf("without the password: %v, want the registry's answer", err)
	}
	login := base64.StdEncoding.EncodeToString([]byte(localrunnertest.User + ":" + localrunnertest.Password))
	write(t, filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), //nolint:forbidigo // set above
		fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registry.Host, login))
	if err := evaluate(t, false, image); err != nil {
		t.Fatal(err)
	}
	registry.Stop()
	if err := evaluate(t, true, image); err != nil {
		t.Errorf("offline: %v", err)
	}
	err := evaluate(t, true, registry.Host+"/fn/other:v1")
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "is not in the image store") {
		t.Errorf("offline, an image that was never pulled: %v", err)
	}
}

// TestPlainHTTPIsForListedRegistries runs an image of a registry without TLS.
func TestPlainHTTPIsForListedRegistries(t *testing.T) {
	setUp(t)
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	err := evaluate(t, false, registry.Host+"/fn/echo:v1")
	if status.Code(err) != codes.FailedPrecondition ||
		!strings.Contains(err.Error(), "list it in FNR_INSECURE_REGISTRIES") {
		t.Errorf("not listed: %v", err)
	}
	t.Setenv("FNR_INSECURE_REGISTRIES", registry.Host)
	if err := evaluate(t, false, registry.Host+"/fn/echo:v1"); err != nil {
		t.Errorf("listed: %v", err)
	}
}

// TestMachinesWithoutALauncher selects a missing launcher, and no launcher. If all launchers are missing, functions run
// in place.
func TestMachinesWithoutALauncher(t *testing.T) {
	setUp(t)
	for value, want := range map[string]string{"bubblewrap": "install the package bubblewrap", "off": "FNR_SANDBOX"} {
		t.Setenv("FNR_SANDBOX", value)
		t.Setenv("PATH", t.TempDir())
		settings, err := localrunner.Load()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := localrunner.Start(t.Context(), localrunner.Config{Settings: settings}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("FNR_SANDBOX=%s: got %v, want %q", value, err, want)
		}
	}
	t.Setenv("FNR_SANDBOX", "auto")
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	t.Setenv("FNR_INSECURE_REGISTRIES", registry.Host)
	if err := evaluate(t, false, registry.Host+"/fn/echo:v1"); err != nil {
		t.Errorf("FNR_SANDBOX=auto: %v", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStartThatFailsLeavesNothing starts a runner without a store. What starts sandboxes is closed then, as the check
// for goroutines shows.
func TestStartThatFailsLeavesNothing(t *testing.T) {
	setUp(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	t.Setenv("FNR_SANDBOX_STORE", filepath.Join(file, "store"))
	settings, err := localrunner.Load()
	if err != nil {
		t.Fatal(err)
	}
	_, err = localrunner.Start(t.Context(), localrunner.Config{Settings: settings})
	if err == nil || !strings.Contains(err.Error(), "FNR_SANDBOX_STORE") {
		t.Errorf("error %v, want one that names the setting", err)
	}
	goleak.VerifyNone(t)
}
