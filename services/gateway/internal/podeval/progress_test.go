// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

// TestWaitsAreVisibleWhileTheyLast has an evaluation wait for a pod-manager that cannot be reached, then
// for a pod that is never pulled.
func TestWaitsAreVisibleWhileTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel, scrape := scrapetest.New(t)
		spans := tracetest.NewSpanRecorder()
		tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		active := evalmetrics.NewActive(tel.Meters)
		visible := func(phase string) {
			t.Helper()
			if want := `fn_evaluations_active{phase="` + phase + `"} 1`; !strings.Contains(scrape(), want) {
				t.Errorf("no %s while it waits", want)
			}
		}
		manager := leasetest.NewManager(
			func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
				<-time.After(time.Second)
				visible("queue")
				waiting(&lease.Waiting{Reason: "no pod-manager can be reached"})
				<-time.After(4 * time.Second)
				visible("queue")
				waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_PULLING, Reason: "pulling"})
				<-time.After(20 * time.Second)
				visible("pull")
				return nil, fault.New(fault.Precondition, "no such image")
			})
		measured := newRequest()
		measured.Measured = active.Begin("fn:v1")
		e := newEvaluator(t, manager, tel)
		if _, err := e.Evaluate(t.Context(), measured); fault.Of(err) != fault.Precondition {
			t.Fatalf("error %v, want that of the lease", err)
		}
		measured.Measured.End()
		metrics := scrape()
		for _, want := range []string{
			`fn_phase_duration_seconds_sum{phase="queue"} 5`, `fn_phase_duration_seconds_sum{phase="pull"} 20`,
			`fn_evaluations_active{phase="pull"} 0`,
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("no %s in:\n%s", want, metrics)
			}
		}
		if i := slices.IndexFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool {
			return s.Name() == "fn.lease.pull" && s.Status().Code == codes.Error
		}); i < 0 {
			t.Error("no span of the phase that failed")
		}
	})
}
