// SPDX-License-Identifier: Apache-2.0

package frontdoor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/audit"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/frontdoor"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

// ends is an evaluator whose evaluations end as the function does.
type ends func(evaluation.Request) (evaluation.Response, error)

func (ends) Name() string { return "exec" }

func (e ends) Evaluate(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
	return e(req)
}

// events keeps events.
type events struct{ all []audit.Event }

func (e *events) Write(_ context.Context, events []audit.Event) error {
	e.all = append(e.all, events...)
	return nil
}

func (*events) Close() error { return nil }

// audited evaluates a list as often as there are ends, with a queue of one event, and returns the events.
func audited(t *testing.T, all ...ends) []audit.Event {
	t.Helper()
	output := &events{}
	synctest.Test(t, func(t *testing.T) {
		log, err := audit.New(audit.Config{
			Output: output, Queue: 1, WhenFull: audit.Reject, Telemetry: telemetry.Discard(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- log.Run(ctx) }()
		for _, e := range all {
			evaluate(t, log, e)
			synctest.Wait()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return output.all
}

// evaluate evaluates a list, and survives a panic as the server does.
func evaluate(t *testing.T, log *audit.Log, e ends) {
	t.Helper()
	h, err := frontdoor.New(frontdoor.Config{
		Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{e}, Audit: log,
		Telemetry: telemetry.Discard(), MaxMessageBytes: 1 << 20, MaxInHandBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = recover() }()
	_, _ = h.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
		Image: "example.com/fn:v1", ResourceList: []byte(list),
	})
}

// TestAnEventHasTheVerdictOfItsRule has the verdicts that a policy can have, and none.
func TestAnEventHasTheVerdictOfItsRule(t *testing.T) {
	got := audited(t,
		func(evaluation.Request) (evaluation.Response, error) { return evaluation.Response{}, nil },
		func(req evaluation.Request) (evaluation.Response, error) {
			req.Measured.Decided("catalog")
			req.Measured.Signed([]string{"release"})
			return evaluation.Response{}, nil
		},
		func(req evaluation.Request) (evaluation.Response, error) {
			req.Measured.Decided("catalog")
			return evaluation.Response{}, errors.New("exit status 1")
		},
		func(req evaluation.Request) (evaluation.Response, error) {
			req.Measured.Decided("for this evaluator")
			return evaluation.Response{}, &evaluation.DeniedError{
				Rule: "default", Reason: fault.New(fault.Denied, "rejected"),
			}
		},
	)
	want := [][2]string{
		{audit.NoPolicy, ""}, {audit.Allowed, "catalog"}, {audit.Allowed, "catalog"}, {audit.Denied, "default"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i, e := range got {
		if e.Verdict != want[i][0] || e.Rule != want[i][1] {
			t.Errorf("evaluation %d: verdict %s by rule %q, want %v", i, e.Verdict, e.Rule, want[i])
		}
		if signed := slices.Equal(e.Image.Signers, []string{"release"}); signed != (i == 1) {
			t.Errorf("evaluation %d: signers %v", i, e.Image.Signers)
		}
	}
}

// TestAPanicHasItsEvent has more evaluations panic than the queue has slots: none may keep its slot.
func TestAPanicHasItsEvent(t *testing.T) {
	panics := func(evaluation.Request) (evaluation.Response, error) { panic("index out of range") }
	got := audited(t, panics, panics, panics)
	if len(got) != 3 {
		t.Fatalf("%d events, want 3: %+v", len(got), got)
	}
	for _, e := range got {
		if e.Code != "internal" || e.Image.Name != "example.com/fn:v1" || e.Input.Bytes != len(list) || e.Reason == "" {
			t.Errorf("event %+v, want an internal failure of the image with that input, with a reason", e)
		}
	}
}
