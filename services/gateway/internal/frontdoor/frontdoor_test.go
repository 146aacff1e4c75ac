package frontdoor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/frontdoor"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

const list = "kind: ResourceList\nitems: []\n"

// catalog serves every image, except that some fail.
type catalog struct{}

func (catalog) Name() string { return "exec" }

func (catalog) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	switch {
	case strings.Contains(req.Given, "unknown"):
		return evaluation.Response{}, fault.New(fault.NotFound, "not served")
	case strings.Contains(req.Given, "broken"):
		measure.Resolved(ctx, 3*time.Second)
		measure.Resolved(ctx, 3*time.Second)
		return evaluation.Response{}, fault.New(fault.Internal, "failed")
	}
	results := []resourcelist.Result{{Message: "m", Severity: "warning"}}
	return evaluation.Response{ResourceList: req.ResourceList, Results: results}, nil
}

// newHandler returns a handler, and a function that returns its metrics.
func newHandler(t *testing.T) (*frontdoor.Handler, func() string) {
	t.Helper()
	tel, scrape := scrapetest.New(t)
	h, err := frontdoor.New(frontdoor.Config{
		Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{catalog{}},
		MaxMessageBytes: 1 << 20, MaxInHandBytes: 1 << 20, Telemetry: tel,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, scrape
}

func TestMetrics(t *testing.T) {
	h, scrape := newHandler(t)
	for _, req := range []*evaluator.EvaluateFunctionRequest{
		{Image: "good:v1", ResourceList: []byte(list)},
		{Image: "broken:v1", ResourceList: []byte(list)},
		{Image: "unknown:v1", ResourceList: []byte(list)},
		{Image: "not an image", ResourceList: []byte(list)},
		{Image: "good:v1"},
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
		`fn_phase_duration_seconds_count{phase="resolve"} 5`,
		`fn_phase_duration_seconds_sum{phase="resolve"} 6.`, // two tries of one
		`fn_request_bytes_count 5`,
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

func TestImageLabelsAreBounded(t *testing.T) {
	h, scrape := newHandler(t)
	for i := range 1000 {
		if _, err := h.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{Image: fmt.Sprintf("fn:v%d", i), ResourceList: []byte(list)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(scrape(), "\nfn_evaluations_total{"); n > 201 {
		t.Errorf("%d series, one for each image that anybody named", n)
	}
}

// TestARequestThatWasGivenUpIsCounted has one whose client stalled, as rpcserve says.
func TestARequestThatWasGivenUpIsCounted(t *testing.T) {
	h, scrape := newHandler(t)
	given := connect.NewError(connect.CodeDeadlineExceeded, errors.New("given up"))
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(given))
	h.Bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); !errors.Is(err, given) {
			t.Errorf("read: %v, want what rpcserve said", err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if want := `fn_rejections_total{reason="deadline_exceeded"} 1`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s", want)
	}
}
