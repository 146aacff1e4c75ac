// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// TestGatewaysThroughKubectl calls a gateway in a cluster, to which a kubectl in front of PATH forwards.
func TestGatewaysThroughKubectl(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(t.Context, podManager())))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$@\" >> " + calls + "\necho 'Forwarding from " + server.Listener.Addr().String() +
		" -> 9445'; exec sleep 600\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")) //nolint:forbidigo // of the test
	for args, want := range map[string]string{
		"": "--namespace=porch-system port-forward --address=127.0.0.1 " +
			"service/function-runner :9445",
		"--address=other:1 --context=c": "service/other :1",
	} {
		var out strings.Builder
		env := command.Environment{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
		cli.Run(t.Context(), env, append([]string{"pods", "--namespace=porch-system"}, strings.Fields(args)...))
		if !strings.Contains(out.String(), "warm-v1-0") {
			t.Errorf("it prints %q, want the pods", out.String())
		}
		called, _ := os.ReadFile(calls) // missing if there were none
		if !strings.Contains(string(called), want) {
			t.Errorf("kubectl was called with\n%s\nwant %q", called, want)
		}
	}
}

// TestFlagsOfClusters has flags that mean nothing without the namespace of a gateway, or beside other addresses.
func TestFlagsOfClusters(t *testing.T) {
	for args, want := range map[string]string{
		"pods --context=c":                "with --namespace only",
		"eval --local --namespace=a -i a": "not both",
	} {
		var out strings.Builder
		env := command.Environment{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
		if code := cli.Run(t.Context(), env, strings.Fields(args)); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d and %q, want 2 and %q", args, code, out.String(), want)
		}
	}
}
