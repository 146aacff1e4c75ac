// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// coldStart leases a pod that is created first.
func coldStart(address string) leasetest.Grant {
	return func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
		granted := &lease.Granted{
			Pod: "fn-1", PodUid: "uid", Namespace: "fns", Address: address, ColdStart: true,
			Reference: "example.com/fn:v1", Digest: "sha256:1",
		}
		for p := podmanagerv1.Phase_PHASE_QUEUED; p <= podmanagerv1.Phase_PHASE_CONNECTING; p++ {
			waiting(&lease.Waiting{Phase: p, Reason: "a"})
			waiting(&lease.Waiting{Phase: p, Reason: "b"})
			took := &podmanagerv1.PhaseDuration{Phase: p, Duration: durationpb.New(3 * time.Second)}
			granted.Phases = append(granted.Phases, took)
		}
		return granted, nil
	}
}

func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tel := telemetry.Discard()
	tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	e := newEvaluator(t, leasetest.NewManager(coldStart(testpod.Serve(t, 1<<20, echo))), tel)
	if _, err := e.Evaluate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	var names, events []string
	var attributes strings.Builder
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
		if span.Name() != "fn.lease" {
			continue
		}
		for _, event := range span.Events() {
			events = append(events, event.Name)
		}
		for _, a := range span.Attributes() {
			fmt.Fprintf(&attributes, "%s=%v ", a.Key, a.Value.AsInterface())
		}
	}
	want := "[fn.lease.queue fn.lease.resolve fn.lease.create fn.lease.schedule fn.lease.pull fn.lease.start " +
		"fn.lease.connect fn.lease evaluator.FunctionEvaluator/EvaluateFunction]"
	if got := fmt.Sprint(names); got != want {
		t.Errorf("spans %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(events), "[queued resolved created scheduled pulled started ready]"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, want := range []string{
		"faas.coldstart=true", "k8s.pod.name=fn-1", "container.image.name=example.com/fn:v1",
		"container.image.repo_digests=[example.com/fn:v1@sha256:1]",
	} {
		if !strings.Contains(attributes.String(), want) {
			t.Errorf("attributes %s, want %s", &attributes, want)
		}
	}
}

// TestInventedNamesUseNoLabels has pods of images that cannot be pulled.
func TestInventedNamesUseNoLabels(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	m := leasetest.NewManager(func(
		_ context.Context, _ *lease.Open, waiting func(*lease.Waiting),
	) (*lease.Granted, error) {
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_PULLING})
		return nil, fault.New(fault.Precondition, "no such image")
	})
	e := newEvaluator(t, m, tel)
	_, _ = e.Evaluate(t.Context(), newRequest())
	if want := `fn_cold_starts_total{image="other",outcome="precondition"} 1`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s", want)
	}
}

// TestAMissingImageIsAFailedColdStart has images with a typo, which the pod-manager finds out before it creates a
// pod, and a registry that is gone, which is no failure of pods.
func TestAMissingImageIsAFailedColdStart(t *testing.T) {
	tests := map[string]struct {
		last  podmanagerv1.Phase
		class fault.Class
		want  bool
	}{
		"typo":             {podmanagerv1.Phase_PHASE_UNSPECIFIED, fault.Precondition, true},
		"typo, slowly":     {podmanagerv1.Phase_PHASE_RESOLVING, fault.Precondition, true},
		"registry is gone": {podmanagerv1.Phase_PHASE_RESOLVING, fault.Unavailable, false},
		"caller has left":  {podmanagerv1.Phase_PHASE_RESOLVING, fault.Canceled, false},
		"queue is full":    {podmanagerv1.Phase_PHASE_QUEUED, fault.Exhausted, false},
		"pod crashes":      {podmanagerv1.Phase_PHASE_STARTING, fault.Precondition, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tel, scrape := scrapetest.New(t)
			refuse := func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
				if tc.last != podmanagerv1.Phase_PHASE_UNSPECIFIED {
					waiting(&lease.Waiting{Phase: tc.last})
				}
				return nil, fault.New(tc.class, "no")
			}
			e := newEvaluator(t, leasetest.NewManager(refuse), tel)
			if _, err := e.Evaluate(t.Context(), newRequest()); err == nil {
				t.Fatal("evaluated without a lease")
			}
			if got := strings.Contains(scrape(), "fn_cold_starts_total{"); got != tc.want {
				t.Errorf("counted as a failed cold start: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	good := testpod.Serve(t, 1<<20, echo)
	cold := coldStart(good)
	grants := []leasetest.Grant{
		pods(pod("bad", refused)), cold, // one evaluation, tried twice
		func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
			waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_PULLING})
			return nil, fault.New(fault.Precondition, "no such image")
		},
		func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
			waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED})
			return nil, fault.New(fault.Exhausted, "queue full")
		},
		pods(pod("warm", good)),
	}
	next := 0
	m := leasetest.NewManager(func(
		ctx context.Context, open *lease.Open, waiting func(*lease.Waiting),
	) (*lease.Granted, error) {
		next++
		return grants[next-1](ctx, open, waiting)
	})
	e := newEvaluator(t, m, tel)
	active := evalmetrics.NewActive(tel.Meters)
	measured := newRequest()
	measured.Measured = active.Begin("fn:v1")
	for range 4 {
		_, _ = e.Evaluate(t.Context(), measured)
	}
	metrics := scrape()
	resolved := measured.Measured.Resolved()
	if resolved != 3*time.Second || strings.Contains(metrics, `fn_phase_duration_seconds_count{phase="resolve"}`) {
		t.Errorf("resolving took %v, want the 3s of the cold start, which the handler is to measure", resolved)
	}
	for _, want := range []string{
		`fn_cold_starts_total{image="fn:v1",outcome="ok"} 1`,
		`fn_cold_starts_total{image="fn:v1",outcome="precondition"} 1`,
		`fn_retries_total 1`,
		`fn_phase_duration_seconds_sum{phase="queue"} 3`,
		`fn_phase_duration_seconds_sum{phase="pull"} 3`,
		`fn_phase_duration_seconds_sum{phase="connect"} 3.`,
		`fn_phase_duration_seconds_count{phase="connect"} 2`,
		`fn_phase_duration_seconds_count{phase="run"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() || strings.Contains(metrics, `outcome="exhausted"`) {
		t.Log(metrics)
	}
}
