// SPDX-License-Identifier: Apache-2.0

package evalhandler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

const list = "kind: ResourceList\nitems: []\n"

// secret is what a function that fails writes.
const secret = "password: hunter2"

// catalog serves every image, except that some fail.
type catalog struct{}

func (catalog) Name() string { return "exec" }

func (catalog) Evaluate(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
	switch {
	case strings.Contains(req.Given, "unknown"):
		return evaluation.Response{}, fault.New(fault.NotFound, "not served")
	case strings.Contains(req.Given, "broken"):
		req.Measured.Resolving(3 * time.Second)
		req.Measured.Resolving(3 * time.Second)
		failure := &functionrunnerv1.FunctionFailure{Reason: function.Exited, ExitCode: 7, Stderr: secret}
		return evaluation.Response{}, fault.New(fault.Internal, "failed: %w", function.Received(secret, failure))
	case strings.Contains(req.Given, "missing"):
		failure := &functionrunnerv1.FunctionFailure{Reason: function.NotStarted}
		return evaluation.Response{}, fault.New(fault.Internal, "%w", function.Received("no such file", failure))
	case strings.Contains(req.Given, "hostile"):
		return evaluation.Response{}, fault.New(fault.Internal, "failed: %w", &evaluation.ListError{Err: errors.New(secret)})
	case strings.Contains(req.Given, "invented"):
		return evaluation.Response{}, fault.New(fault.Precondition, "cannot be pulled")
	}
	results := []resourcelist.Result{{Message: "m", Severity: "warning"}}
	return evaluation.Response{ResourceList: req.ResourceList, Results: results}, nil
}

// newHandler returns a handler, and a function that returns its metrics.
func newHandler(t *testing.T) (*evalhandler.Handler, func() string) {
	t.Helper()
	tel, scrape := scrapetest.New(t)
	return newHandlerWith(t, evalhandler.Config{Telemetry: tel}), scrape
}

// newHandlerWith returns a handler with cfg's telemetry and log.
func newHandlerWith(t *testing.T, cfg evalhandler.Config) *evalhandler.Handler {
	t.Helper()
	cfg.Names = nameresolver.Resolver{DefaultPrefix: "example.com"}
	cfg.Chain = evaluation.Chain{catalog{}}
	cfg.MaxMessageBytes, cfg.MemoryBudgetBytes = 1<<20, 1<<20
	cfg.History = evalhistory.New()
	h := evalhandler.New(cfg)
	return h
}

func TestMetrics(t *testing.T) {
	h, scrape := newHandler(t)
	for _, req := range []*evaluator.EvaluateFunctionRequest{
		{Image: "good:v1", ResourceList: []byte(list)},
		{Image: "broken:v1", ResourceList: []byte(list)},
		{Image: "unknown:v1", ResourceList: []byte(list)},
		{Image: "not an image", ResourceList: []byte(list)},
		{Image: "good:v1"},
		{Image: "missing:v1", ResourceList: []byte(list)},
	} {
		_, _ = h.EvaluateFunction(t.Context(), req)
	}
	metrics := scrape()
	for _, want := range []string{
		`fn_evaluations_total{code="ok",executor="exec",image="good:v1",severity="warning"} 1`,
		`fn_evaluations_total{code="internal",executor="exec",image="broken:v1",severity="none"} 1`,
		`fn_evaluations_total{code="not_found",executor="",image="other",severity="none"} 1`,
		`fn_evaluations_total{code="invalid",executor="",image="other",severity="none"} 2`,
		`fn_rejections_total{reason="not_found"} 1`,
		`fn_rejections_total{reason="invalid"} 2`,
		`fn_evaluation_duration_seconds_count{code="ok",executor="exec",image="good:v1",severity="warning"} 1`,
		`fn_evaluations_total{code="internal",executor="exec",image="other",severity="none"} 1`,
		`fn_phase_duration_seconds_count{phase="resolve"} 6`,
		`fn_phase_duration_seconds_sum{phase="resolve"} 6.`, // two tries of one
		`fn_request_bytes_count 6`,
		`fn_response_bytes_count 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Log(metrics)
	}
}

// evaluateImage calls a handler directly.
func evaluateImage(t *testing.T, h *evalhandler.Handler, image string) error {
	t.Helper()
	_, err := h.EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
	return err
}

func TestImageLabelsAreBounded(t *testing.T) {
	h, scrape := newHandler(t)
	for i := range 1000 {
		if err := evaluateImage(t, h, fmt.Sprintf("fn:v%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(scrape(), "\nfn_evaluations_total{"); n > 201 {
		t.Errorf("%d series, one for each image that a caller named", n)
	}
}

// TestInvalidListsReachNoEvaluator has lists that are not valid for images that are served, and that are not.
func TestInvalidListsReachNoEvaluator(t *testing.T) {
	for _, image := range []string{"good:v1", "unknown:v1"} {
		asked := 0
		h := evalhandler.New(evalhandler.Config{
			Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20,
			Chain:     evaluation.Chain{counted{catalog{}, &asked}},
			Telemetry: telemetry.Discard(), History: evalhistory.New(),
		})
		for _, list := range []string{"kind: [", ""} {
			_, err := h.EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%s, %q: %v, want that the list is not valid", image, list, err)
			}
		}
		if asked > 0 {
			t.Errorf("%s: %d lists that are not valid reached the evaluator", image, asked)
		}
	}
}

// counted counts what an evaluator is asked.
type counted struct {
	evaluation.Evaluator
	asked *int
}

func (c counted) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	*c.asked++
	return c.Evaluator.Evaluate(ctx, req)
}

// TestInventedNamesUseNoLabels has a caller name images that cannot be pulled.
func TestInventedNamesUseNoLabels(t *testing.T) {
	h, scrape := newHandler(t)
	for i := range 300 {
		_ = evaluateImage(t, h, fmt.Sprintf("invented:v%d", i))
	}
	if err := evaluateImage(t, h, "good:v1"); err != nil {
		t.Fatal(err)
	}
	metrics := scrape()
	const want = `fn_evaluations_total{code="ok",executor="exec",image="good:v1",severity="warning"} 1`
	if !strings.Contains(metrics, want) {
		t.Errorf("no %s", want)
	}
	if strings.Contains(metrics, "invented") {
		t.Error("an image that was never evaluated has a label of its own")
	}
}

// TestTheLogHasNoFunctionOutput has a function fail, and write a secret.
func TestTheLogHasNoFunctionOutput(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		var log logtest.Log
		tel := telemetry.Discard()
		tel.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h := newHandlerWith(t, evalhandler.Config{Telemetry: tel, LogFunctionOutput: wanted, MaxLogRate: 10})
		err := evaluateImage(t, h, "broken:v1")
		if err == nil || !strings.Contains(err.Error(), secret) {
			t.Errorf("error %v, want what the function wrote: its caller gave it", err)
		}
		line := log.Line("evaluation failed")
		if strings.Contains(log.String(), "hunter2") != wanted {
			t.Errorf("with the setting %t the log says %s", wanted, log.String())
		}
		for _, want := range []string{"code=internal", "image=broken:v1", "reason=REASON_EXITED", "exit_code=7"} {
			if !wanted && !strings.Contains(line, want) {
				t.Errorf("the log says %q, want %s", line, want)
			}
		}
	}
	var log logtest.Log
	tel := telemetry.Discard()
	tel.Log = slog.New(slog.NewTextHandler(&log, nil))
	h := newHandlerWith(t, evalhandler.Config{Telemetry: tel, MaxLogRate: 10})
	_ = evaluateImage(t, h, "missing:v1")
	if !strings.Contains(log.String(), "no such file") {
		t.Errorf("the log says %q, want why no function was started", log.String())
	}
}

// TestLogHasNothingOfLists evaluates an invalid list, and a valid list in a pod whose answer is invalid.
func TestLogHasNothingOfLists(t *testing.T) {
	tests := map[string]struct{ image, list, want string }{
		"request": {"good:v1", "kind: ResourceList\npassword: *hunter2\n", "the resource list is not valid"},
		"answer":  {"hostile:v1", list, "the pod's answer is not a valid resource list"},
	}
	for name, tc := range tests {
		for _, wanted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, LogFunctionOutput %t", name, wanted), func(t *testing.T) {
				var log logtest.Log
				tel := telemetry.Discard()
				tel.Log = slog.New(slog.NewTextHandler(&log, nil))
				h := newHandlerWith(t, evalhandler.Config{Telemetry: tel, LogFunctionOutput: wanted, MaxLogRate: 10})
				_, err := h.EvaluateFunction(t.Context(),
					&evaluator.EvaluateFunctionRequest{Image: tc.image, ResourceList: []byte(tc.list)})
				if err == nil || !strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error %v, want one for the caller with the value", err)
				}
				if strings.Contains(log.String(), "hunter2") != wanted || (!wanted && !strings.Contains(log.String(), tc.want)) {
					t.Errorf("the log says %s", log.String())
				}
			})
		}
	}
}

// TestARequestThatWasGivenUpIsCounted has one whose client stalled, as rpcserve says.
func TestARequestThatWasGivenUpIsCounted(t *testing.T) {
	h, scrape := newHandler(t)
	given := connect.NewError(connect.CodeDeadlineExceeded, errors.New("given up"))
	path, handler := h.Serve()
	r := httptest.NewRequest(http.MethodPost, path+"EvaluateFunction", iotest.ErrReader(given))
	r.Header.Set("Content-Type", "application/proto")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if want := `fn_rejections_total{reason="deadline_exceeded"} 1`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s", want)
	}
}

// slowNames is an image-resolver that ends a little before the deadline that it is given.
type slowNames struct{}

func (slowNames) Resolve(ctx context.Context, _, _ string) (imagename.Name, error) {
	ctx, cancel := retry.EarlyDeadline(ctx)
	defer cancel()
	<-ctx.Done()
	return imagename.Name{}, fault.New(fault.DeadlineExceeded, "the registry has not answered")
}

// TestLookupTimeoutsNameTheirSetting has the time pass while the image's tag is looked up.
func TestLookupTimeoutsNameTheirSetting(t *testing.T) {
	tests := map[string]struct {
		caller time.Duration
		named  bool
		reason string
	}{
		"the gateway's": {time.Hour, true, "an operator can raise it"},
		"the caller's":  {time.Second, false, "it is the caller's own"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := evalhandler.New(evalhandler.Config{
					Names: slowNames{}, MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20,
					MaxEvaluationTime: time.Minute, MaxTimeSetting: "FNR_SOME_TIME", Telemetry: telemetry.Discard(),
					History: evalhistory.New(),
				})
				ctx, cancel := context.WithTimeout(t.Context(), tc.caller)
				defer cancel()
				_, err := h.EvaluateFunction(ctx,
					&evaluator.EvaluateFunctionRequest{Image: "fn", Tag: ">=1", ResourceList: []byte(list)})
				if fault.Of(err) != fault.DeadlineExceeded ||
					strings.Contains(err.Error(), "raise the gateway's setting FNR_SOME_TIME") != tc.named {
					t.Errorf("%v of class %v, names the setting: want %t: %s", err, fault.Of(err), tc.named, tc.reason)
				}
			})
		})
	}
}

// waiting evaluates until its context ends, and returns what it waited for.
type waiting struct{}

func (waiting) Name() string { return "pod" }

func (waiting) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	<-ctx.Done()
	return evaluation.Response{}, function.Interrupted(ctx.Err(), req.Given, time.Second, "waiting for a pod: queued")
}

// TestTheReasonComesBeforeTheDeadline checks that a caller gets to know what was waited for: at its
// deadline it would hear nothing any more.
func TestTheReasonComesBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel, _ := scrapetest.New(t)
		h := evalhandler.New(evalhandler.Config{
			Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{waiting{}},
			MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20, Telemetry: tel, History: evalhistory.New(),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := h.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: "good:v1", ResourceList: []byte(list)})
		if fault.Of(err) != fault.DeadlineExceeded || !strings.Contains(err.Error(), "waiting for a pod: queued") {
			t.Errorf("got %v, want what was waited for", err)
		}
		if ctx.Err() != nil {
			t.Error("the caller is gone already")
		}
	})
}
