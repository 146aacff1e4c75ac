// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestProgramsDoNotNoticeTheirCollector compares programs whose collector does not do its work with one that has
// none. Both run at the same time, and evaluate in turns: what else the machine does concerns both.
func TestProgramsDoNotNoticeTheirCollector(t *testing.T) {
	program := gobuild.Program(t, ".", ".")
	for name, address := range map[string]string{
		"down": "http://127.0.0.1:1", "hangs": hangs(t), "never answers": silent(t), "refuses": refuses(t), "slow": slow(t),
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			with, without := start(t, program, address), start(t, program, "")
			for range 200 {
				with.evaluate(t)
				without.evaluate(t)
			}
			got, want := median(with.took), median(without.took)
			if got > want+slowAnswer/2 {
				t.Errorf("evaluations take %v, and %v without a collector", got, want)
			}
			// Each export may take an hour; at its end, the program waits for two seconds.
			later := with.stop(t) - without.stop(t)
			if later > 5*time.Minute {
				t.Errorf("the program ends %v later", later)
			}
			if n := strings.Count(with.log.String(), "telemetry not sent"); n > 1+int(time.Since(begin)/time.Minute) {
				t.Errorf("%d lines about telemetry in %v, want one a minute at most", n, time.Since(begin))
			}
		})
	}
}

// running is a program that runs, and how long its evaluations took.
type running struct {
	*exec.Cmd

	log     bytes.Buffer
	callers evaluator.FunctionEvaluatorClient
	took    []time.Duration
}

// start runs the program with a collector at an address, none if it is empty, and has it evaluate once.
func start(t *testing.T, program, collector string) *running {
	t.Helper()
	functions := t.TempDir()
	testfn.Install(t, functions, "echo")
	config := filepath.Join(functions, "config.yaml")
	if err := os.WriteFile(config, []byte("functions: [{function: echo, images: ['echo:v1']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freeport.Choose(t)
	r := &running{Cmd: exec.CommandContext(t.Context(), program,
		"--port="+port, "--disable-runtimes=pod", "--functions="+functions, "--config="+config)}
	r.Env = append(r.Environ(), "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s")
	if collector != "" {
		r.Env = append(r.Env,
			"OTEL_EXPORTER_OTLP_ENDPOINT="+collector, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
			"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_METRIC_EXPORT_INTERVAL=100", "OTEL_EXPORTER_OTLP_TIMEOUT=3600000")
	}
	r.Stderr = io.MultiWriter(&r.log, t.Output())
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	conn := servetest.Dial(t, "127.0.0.1:"+port)
	r.callers = evaluator.NewFunctionEvaluatorClient(conn)
	r.evaluate(t)
	r.took = nil
	return r
}

// evaluate has the program evaluate a function, as soon as it serves.
func (r *running) evaluate(t *testing.T) {
	t.Helper()
	start := time.Now()
	_, err := r.callers.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
		Image: "echo:v1", ResourceList: []byte("kind: ResourceList\nitems: []\n"),
	}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	r.took = append(r.took, time.Since(start))
}

// stop ends the program in order, and returns how long that took.
func (r *running) stop(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	return time.Since(start)
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// slowAnswer is how long a slow collector takes for each request: much longer than an evaluation.
const slowAnswer = 500 * time.Millisecond

// slow starts a collector that takes that long.
func slow(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-time.After(slowAnswer)
	}))
	t.Cleanup(server.Close)
	return server.URL
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
	listener := servetest.Listen(t)
	return "http://" + listener.Addr().String()
}
