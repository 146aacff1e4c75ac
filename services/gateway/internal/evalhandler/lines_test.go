// SPDX-License-Identifier: Apache-2.0

package evalhandler_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
)

// logged returns a handler that logs at a verbosity, with its log.
func logged(t *testing.T, verbosity int) (*evalhandler.Handler, *logtest.Log) {
	t.Helper()
	log := new(logtest.Log)
	cfg := telemetry.Config{MetricsAddress: "off", LogFormat: "json", LogVerbosity: verbosity}
	tel, err := telemetry.New(t.Context(), "gateway", cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	return newHandlerWith(t, evalhandler.Config{Telemetry: tel, MaxLogRate: 5}), log
}

func TestEachEvaluationHasALine(t *testing.T) {
	h, log := logged(t, 2)
	payload := "kind: ResourceList\nitems: [{kind: Secret, metadata: {name: hunter2}}]\n"
	req := &evaluator.EvaluateFunctionRequest{Image: "good:v1", ResourceList: []byte(payload)}
	if _, err := h.EvaluateFunction(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(log.String()), &line); err != nil {
		t.Fatalf("%v in %q, want one line", err, log)
	}
	want := map[string]any{
		"level": "INFO", "msg": "evaluated", "image": "good:v1", "resolved": "example.com/good:v1", "evaluator": "exec",
		"code": "ok", "severity": "warning", "request_bytes": float64(len(payload)),
		"response_bytes": float64(len(payload)), "cold_start": false, "attempts": float64(0),
	}
	for key, value := range want {
		if line[key] != value {
			t.Errorf("%s is %v, want %v", key, line[key], value)
		}
	}
	if seconds, ok := line["seconds"].(float64); !ok || seconds <= 0 {
		t.Errorf("seconds is %v, want a duration in seconds", line["seconds"])
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log has a part of the resource list: %s", log)
	}
}

// TestLinesAreSampled has a hundred evaluations a second succeed, and one fail in between.
func TestLinesAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := logged(t, 2)
		evaluate := func(image string) {
			_, _ = h.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
		}
		for n := range 1000 {
			evaluate("good:v1")
			if n == 500 {
				evaluate("broken:v1")
			}
			<-time.After(10 * time.Millisecond)
		}
		if n := log.Count(`"evaluated"`); n < 50 || n > 55 {
			t.Errorf("%d lines in ten seconds, want 5 in a second", n)
		}
		if n := log.Count(`"unlogged":19`); n < 45 {
			t.Errorf("%d lines count the evaluations without a line", n)
		}
		if log.Line("evaluation failed") == "" {
			t.Error("the failure is not logged")
		}
	})
}

// TestDebugLogsHaveAllEvaluations has more evaluations than the rate, and one after a pause: none is unlogged.
func TestDebugLogsHaveAllEvaluations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := logged(t, 4)
		for n := range 101 {
			if n == 100 {
				<-time.After(time.Minute)
			}
			if _, err := h.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: "good:v1", ResourceList: []byte(list)}); err != nil {
				t.Fatal(err)
			}
		}
		if n, unlogged := log.Count(`"evaluated"`), log.Count(`"unlogged"`); n != 101 || unlogged != 0 {
			t.Errorf("%d lines, of which %d count evaluations without a line; want 101 and 0", n, unlogged)
		}
	})
}

// TestLinesIdentifyListsAtVerbosity3 compares the hashes of a function that answers with its input.
func TestLinesIdentifyListsAtVerbosity3(t *testing.T) {
	const payload = "kind: ResourceList\n"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(payload)))
	for verbosity, want := range map[int]any{2: nil, 3: sum} {
		h, log := logged(t, verbosity)
		req := &evaluator.EvaluateFunctionRequest{Image: "good:v1@sha256:" + sum, ResourceList: []byte(payload)}
		if _, err := h.EvaluateFunction(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(log.String()), &line); err != nil {
			t.Fatalf("%v in %q, want one line", err, log)
		}
		if line["input_sha256"] != want || line["output_sha256"] != want {
			t.Errorf("at verbosity %d the line is %v, want the hashes %v", verbosity, line, want)
		}
		if line["digest"] != "sha256:"+sum {
			t.Errorf("digest is %v, want that of the image's name", line["digest"])
		}
	}
}
