// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

const setNamespace = "github.com/kptdev/krm-functions-catalog/functions/go/set-namespace"

// relative returns dir as users specify it, and as in Porch's default: relative to the working
// directory.
func relative(t *testing.T, dir string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(here, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCatalogFunction evaluates set-namespace as Porch does, with the official gRPC client, and as
// curl does, with JSON: the result is the output of the binary, byte for byte.
func TestCatalogFunction(t *testing.T) {
	functions := filepath.Dir(gobuild.Program(t, "../../functions", setNamespace))
	s, err := settings.Load([]string{
		"--disable-runtimes=pod", "--functions", relative(t, functions), "--config",
		"../../functions/config.yaml",
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return gateway.New(s.Gateway, gateway.Services{}, frame)
	})
	for _, items := range []int{1, 200, 2000} {
		list := resourceList(items)
		cmd := exec.CommandContext(t.Context(), filepath.Join(functions, "set-namespace"))
		cmd.Stdin = bytes.NewReader(list)
		want, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(want, []byte("namespace: shop")) {
			t.Fatal("the binary itself did not set the namespace")
		}
		for protocol, call := range map[string]func(*testing.T, string, []byte) []byte{"gRPC": callGRPC, "JSON": callJSON} {
			t.Run(fmt.Sprintf("%d items with %s", items, protocol), func(t *testing.T) {
				if got := call(t, address, list); !bytes.Equal(got, want) {
					t.Errorf("got %d bytes that differ from the binary's %d", len(got), len(want))
				}
			})
		}
	}
}

func callGRPC(t *testing.T, address string, list []byte) []byte {
	t.Helper()
	conn := servetest.Dial(t, address)
	resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: "set-namespace:v0.4.5", ResourceList: list})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetResourceList()
}

func callJSON(t *testing.T, address string, list []byte) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"image": "ghcr.io/kptdev/krm-functions-catalog/set-namespace", "tag": "~0.4",
		"resourceList": list,
	})
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + address + evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ ResourceList []byte }
	if err := json.Unmarshal(answer, &got); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s, answer %s", resp.Status, answer)
	}
	return got.ResourceList
}

// resourceList returns a list of n deployments, with a configuration for set-namespace.
func resourceList(items int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := range items {
		fmt.Fprintf(&b, "- apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: web-%d # a comment\n"+
			"    namespace: default\n"+
			"  spec:\n    replicas: 3\n    template:\n      spec:\n        containers:\n        - name: web\n"+
			"          image: example.com/web:v1\n", i)
	}
	b.WriteString("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: config\n  data:\n" +
		"    namespace: shop\n")
	return []byte(b.String())
}
