// SPDX-License-Identifier: Apache-2.0

// Package status serves current and recent evaluations of a gateway replica, over RPC and as a page for browsers.
package status

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	"github.com/krm-function-runner/function-runner/libs/fault"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/version"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

// Service implements the RPCs of StatusService, and collects the data of the status page.
type Service struct {
	gatewayv1connect.UnimplementedStatusServiceHandler

	history  *evalhistory.History
	active   Active
	replica  string
	warnings func() []string
	images   func() []string
	started  time.Time
}

// Active provides the numbers of running evaluations and the reasons of their waits.
type Active interface {
	// Counts returns the number of running evaluations in each phase, such as "queue".
	Counts() map[string]int32
	// Waiting returns summaries of waiting evaluations, at most the given number, starting with the longest wait.
	Waiting(most int) []evalmetrics.Waiting
}

// maxWaiting is the maximum number of listed waits. All waits of a function in the same phase count as one wait.
const maxWaiting = 50

// New returns the status service of a gateway replica. The function warnings returns problems as sentences for
// operators. The function images returns the images that run as local binaries.
func New(h *evalhistory.History, active Active, replica string, warnings, images func() []string) *Service {
	return &Service{
		history: h, active: active, replica: replica, warnings: warnings, images: images, started: time.Now(),
	}
}

// GetStatus implements the RPC of StatusService that returns the replica's current state.
func (s *Service) GetStatus(
	context.Context, *gatewayv1.GetStatusRequest,
) (*gatewayv1.GetStatusResponse, error) {
	now, waits := time.Now(), s.currentWaits()
	return &gatewayv1.GetStatusResponse{
		Replica: s.replica, Version: version.String(), StartTime: timestamppb.New(s.started),
		Functions: s.history.Functions(now), Active: s.active.Counts(),
		Waiting: waits, Problems: s.currentProblems(waits, now), Images: s.images(),
	}, nil
}

const (
	// longWait is the time after which the status shows a waiting evaluation as a problem.
	longWait = 10 * time.Second
	// recent is the time for which the status continues to show a system failure as a problem.
	recent = 5 * time.Minute
)

// currentProblems describes the current problems in sentences. Problems are warnings of this replica, failures that
// neither functions nor callers caused, and evaluations that have waited longer than longWait.
func (s *Service) currentProblems(waits []*gatewayv1.GetStatusResponse_Waiting, now time.Time) []string {
	problems := s.warnings()
	failures, last := 0, ""
	for _, e := range s.history.Evaluations(evalhistory.Select{Failed: true}) {
		if e.GetFault() == evalphase.System && now.Sub(e.GetStartTime().AsTime().Add(e.GetDuration().AsDuration())) < recent {
			failures++
			image := path.Base(cmp.Or(evalphase.Image(e), "rejected"))
			last = cmp.Or(last, fmt.Sprintf("(%s) as %s: %s", image, e.GetCode(), e.GetReason()))
		}
	}
	if failures > 0 {
		problems = append(problems, fmt.Sprintf("%d evaluations failed because of the system in the last %.0f minutes, "+
			"the last one %s", failures, recent.Minutes(), last))
	}
	waiting, first := int32(0), ""
	for _, w := range waits {
		if w.GetLongest().AsDuration() > longWait {
			waiting += w.GetCount()
			first = cmp.Or(first, fmt.Sprintf("the longest for %s in the phase %s: %s",
				evalphase.Short(w.GetLongest().AsDuration()), w.GetPhase(), cmp.Or(w.GetReason(), w.GetImage())))
		}
	}
	if waiting > 0 {
		problems = append(problems, fmt.Sprintf("%d evaluations wait, %s", waiting, first))
	}
	return problems
}

// currentWaits returns summaries of the evaluations that wait at the moment, with shortened texts.
func (s *Service) currentWaits() []*gatewayv1.GetStatusResponse_Waiting {
	var all []*gatewayv1.GetStatusResponse_Waiting
	for _, w := range s.active.Waiting(maxWaiting) {
		all = append(all, &gatewayv1.GetStatusResponse_Waiting{
			Image: evalhistory.Name(w.Image), Phase: w.Phase, Reason: evalhistory.Reason(w.Reason),
			Count:   int32(min(w.Count, math.MaxInt32)), //nolint:gosec // bounded here
			Longest: durationpb.New(w.Longest),
		})
	}
	return all
}

const (
	// traceBytes is the length of a trace ID, in bytes. Clients write it as 32 hexadecimal digits.
	traceBytes = 16
	// defaultEvaluations is the number of returned evaluations if the client does not specify a number.
	defaultEvaluations = 100
)

// ListEvaluations implements the RPC of StatusService that returns recent evaluations.
func (s *Service) ListEvaluations(
	_ context.Context, req *gatewayv1.ListEvaluationsRequest,
) (*gatewayv1.ListEvaluationsResponse, error) {
	if id := req.GetTraceId(); id != "" {
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != traceBytes {
			return nil, fault.New(fault.Invalid, "trace_id %.64q must be 32 hexadecimal digits", id)
		}
	}
	selected := evalhistory.Select{TraceID: req.GetTraceId(), Failed: req.GetFailed(), Max: int(req.GetMax())}
	if selected.Max <= 0 {
		selected.Max = defaultEvaluations
	}
	return &gatewayv1.ListEvaluationsResponse{Evaluations: s.history.Evaluations(selected)}, nil
}
