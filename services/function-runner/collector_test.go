// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// ran is how a program ran: how long its evaluations and its end took, and its lines about telemetry.
type ran struct {
	evaluations, end time.Duration
	lines            int
}

// TestProgramsDoNotNoticeTheirCollector compares programs whose collector does not do its work with one that has none.
func TestProgramsDoNotNoticeTheirCollector(t *testing.T) {
	without := runWith(t, "")
	for name, address := range map[string]string{
		"down": "http://127.0.0.1:1", "hangs": hangs(t), "never answers": silent(t), "refuses": refuses(t),
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, address)
			// Two seconds are ours, and OpenTelemetry waits for ten by itself.
			if later := got.end - without.end; later > 6*time.Second {
				t.Errorf("the program ends %v later", later)
			}
			if got.evaluations > 5*without.evaluations {
				t.Errorf("evaluations take %v, and %v without a collector", got.evaluations, without.evaluations)
			}
			if got.lines > 1 {
				t.Errorf("%d lines about telemetry, want one a minute at most", got.lines)
			}
		})
	}
}

// runWith runs the program with a collector at an address, none if it is empty, and has it evaluate functions.
func runWith(t *testing.T, collector string) (r ran) {
	t.Helper()
	functions := t.TempDir()
	testfn.Install(t, functions, "echo")
	config := filepath.Join(functions, "config.yaml")
	if err := os.WriteFile(config, []byte("functions: [{function: echo, images: ['echo:v1']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	program := exec.CommandContext(t.Context(), gobuild.Program(t, ".", "."),
		"--port="+port, "--disable-runtimes=pod", "--functions="+functions, "--config="+config)
	program.Env = append(program.Environ(), "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s")
	if collector != "" {
		program.Env = append(program.Env,
			"OTEL_EXPORTER_OTLP_ENDPOINT="+collector, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
			"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_METRIC_EXPORT_INTERVAL=100")
	}
	var log bytes.Buffer
	program.Stderr = io.MultiWriter(&log, t.Output())
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r.evaluations = evaluations(t, conn)
	start := time.Now()
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	r.end, r.lines = time.Since(start), strings.Count(log.String(), "telemetry not sent")
	return r
}

// evaluations returns how long many evaluations take, after a first one.
func evaluations(t *testing.T, conn *grpc.ClientConn) time.Duration {
	t.Helper()
	client, start := evaluator.NewFunctionEvaluatorClient(conn), time.Now()
	for n := range 200 {
		if n == 1 {
			start = time.Now()
		}
		_, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
			Image: "echo:v1", ResourceList: []byte("kind: ResourceList\nitems: []\n"),
		}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start)
}

// hangs starts a collector that reads requests, and answers none.
func hangs(t *testing.T) string {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-ended
	}))
	t.Cleanup(func() { close(ended); server.Close() })
	return server.URL
}

// refuses starts a collector that has no room.
func refuses(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// silent starts a collector whose connections open, and nothing else happens.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String()
}
