// SPDX-License-Identifier: Apache-2.0

// Package status shows what a replica of the gateway does and has done recently: over RPC, and as a page
// for browsers.
package status

import (
	"context"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/version"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/history"
)

// Service implements the RPC service.
type Service struct {
	gatewayv1connect.UnimplementedStatusServiceHandler

	history *history.History
	active  func() map[string]int32
	replica string
	started time.Time
}

// New returns the service of the replica with that host name, with the active evaluations by phase.
func New(h *history.History, active func() map[string]int32, replica string) *Service {
	return &Service{history: h, active: active, replica: replica, started: time.Now()}
}

// GetStatus implements the service.
func (s *Service) GetStatus(
	context.Context, *gatewayv1.GetStatusRequest,
) (*gatewayv1.GetStatusResponse, error) {
	return &gatewayv1.GetStatusResponse{
		Replica: s.replica, Version: version.String(), StartTime: timestamppb.New(s.started),
		Functions: s.history.Functions(time.Now()), Active: s.active(),
	}, nil
}

// traceBytes is the size of a trace id.
const traceBytes = 16

// ListEvaluations implements the service.
func (s *Service) ListEvaluations(
	_ context.Context, req *gatewayv1.ListEvaluationsRequest,
) (*gatewayv1.ListEvaluationsResponse, error) {
	if id := req.GetTraceId(); id != "" {
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != traceBytes {
			return nil, fault.New(fault.Invalid, "trace_id %.64q has to be 32 hexadecimal digits", id)
		}
	}
	return &gatewayv1.ListEvaluationsResponse{Evaluations: s.history.Evaluations(history.Select{
		TraceID: req.GetTraceId(), Failed: req.GetFailed(), Max: int(req.GetMax()),
	})}, nil
}
