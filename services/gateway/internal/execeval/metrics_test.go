// SPDX-License-Identifier: Apache-2.0

package execeval_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/execeval"
)

// newEvaluator returns an evaluator that runs one function at a time: echo or hang, from
// the directory that it returns. The function scrape returns its metrics.
func newEvaluator(
	t *testing.T,
) (e *execeval.Evaluator, active *evalmetrics.Active, dir string, scrape func() string) {
	t.Helper()
	tel, scrape := scrapetest.New(t)
	dir = t.TempDir()
	testfn.Install(t, dir, "echo", "hang")
	file := filepath.Join(t.TempDir(), "config.yaml")
	const entries = "functions: [{function: echo, images: ['echo:v1']}, {function: hang, images: ['hang:v1']}]"
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := execeval.New(execeval.Config{
		File: file, Functions: dir, DefaultPrefix: "example.com",
		Queue: 1,
		Service: function.ServiceConfig{
			Settings:        function.Settings{Concurrency: 1},
			MaxMessageBytes: 1 << 20, Telemetry: tel,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, evalmetrics.NewActive(tel.Meters), dir, scrape
}

// wantMetrics fails the test unless all lines are among the metrics, once they are.
func wantMetrics(t *testing.T, scrape func() string, lines ...string) {
	t.Helper()
	metrics := scrape()
	for _, line := range lines {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in\n%s", line, metrics)
		}
	}
}

func TestMetrics(t *testing.T) {
	e, active, dir, scrape := newEvaluator(t)
	evaluate := func(ctx context.Context, function string) error {
		_, err := e.Evaluate(ctx, evaluation.Request{
			Given: function, Image: imagename.Name{Repository: "example.com/" + function, Tag: "v1"},
			ResourceList: []byte("kind: ResourceList\n"), Measured: active.Begin(function),
		})
		return err
	}
	if err := evaluate(t.Context(), "echo"); err != nil {
		t.Fatal(err)
	}
	wantMetrics(t, scrape, "fn_exec_running 0", "fn_exec_queue_depth 0",
		`fn_phase_duration_seconds_count{phase="queue"} 1`, `fn_phase_duration_seconds_count{phase="run"} 1`)

	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- evaluate(ctx, "hang") }()
	testfn.AwaitRunning(t, dir, 1)
	go func() { ended <- evaluate(ctx, "hang") }() // another function would get a slot of the reserve
	for !strings.Contains(scrape(), "fn_exec_queue_depth 1\n") && t.Context().Err() == nil {
		continue
	}
	wantMetrics(t, scrape, "fn_exec_running 1", "fn_exec_queue_depth 1")
	leave()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("an evaluation succeeded although its caller had left")
		}
	}
	wantMetrics(t, scrape, "fn_exec_running 0", "fn_exec_queue_depth 0",
		`fn_phase_duration_seconds_count{phase="queue"} 3`, `fn_phase_duration_seconds_count{phase="run"} 2`)
}
