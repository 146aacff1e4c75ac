// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// longestRetry is the longest retry delay that the gateway may pass on from a pod to callers.
const longestRetry = 5 * time.Minute

// hostilePod acts as a function pod with false answers. It answers that no evaluator serves the image, or that callers
// must retry after ten years. The gateway must not pass these answers on to callers.
var hostilePod = Attack{
	Name: "answers of a hostile pod", Programs: gateway, Short: gateway,
	Run: func(ctx context.Context, t *Target) error {
		failure := &functionrunnerv1.FunctionFailure{Image: system.Liar, ExitCode: 1}
		hint := &errdetails.RetryInfo{RetryDelay: durationpb.New(10 * 365 * 24 * time.Hour)}
		var failures []error
		for _, answer := range []error{
			withDetail(connect.CodeNotFound, failure), withDetail(connect.CodeNotFound, hint),
			withDetail(connect.CodeResourceExhausted, hint), withDetail(connect.CodeUnavailable, hint),
		} {
			failures = append(failures, t.checkPassedOn(ctx, answer))
		}
		return errors.Join(failures...)
	},
}

// smallFrames acts as a function pod that sends megabytes in frames of a single byte. The gateway keeps the frames of
// an incomplete message in memory, a hundred bytes for each frame. It must therefore reject the answer early.
var smallFrames = Attack{
	Name: "answers in one-byte frames", Programs: gateway, Short: gateway, PeakLimit: system.Budget * 3 / 2,
	Run: func(ctx context.Context, t *Target) error {
		address, server, err := system.Serve(http.HandlerFunc(answerByByte))
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		t.Lender.Lend(system.Liar, address)
		return runAll(4, func(int) error {
			if _, err := t.evaluate(ctx, system.Liar, List("", "", 0)); err == nil {
				return errors.New("the gateway read an answer in frames of one byte to its end")
			}
			return nil
		})
	},
}

// answerByByte answers an evaluation with a list of 5 MB, in frames of a single byte.
func answerByByte(w http.ResponseWriter, r *http.Request) {
	message, _ := proto.Marshal(&evaluator.EvaluateFunctionResponse{ResourceList: make([]byte, 5_000_000)})
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	w.Header().Set("Content-Type", "application/grpc")
	flush := http.NewResponseController(w).Flush
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil || flush() != nil || r.Context().Err() != nil {
			return
		}
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

func withDetail(code connect.Code, message proto.Message) error {
	err := connect.NewError(code, errors.New("as the pod says"))
	if detail, failed := connect.NewErrorDetail(message); failed == nil {
		err.AddDetail(detail)
	}
	return err
}

// liar is the evaluator in a hostile pod. It answers all evaluations with the same error.
type liar struct{ answer error }

func (l liar) EvaluateFunction(
	context.Context, *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	return nil, l.answer
}

// checkPassedOn checks that the gateway does not pass on a false answer of a pod. The pod answers all evaluations with
// the error answer. checkPassedOn evaluates a function in this pod. It returns an error if the caller receives details
// of the answer that must not reach callers.
func (t *Target) checkPassedOn(ctx context.Context, answer error) error {
	mux := http.NewServeMux()
	mux.Handle(evaluatorconnect.NewFunctionEvaluatorHandler(liar{answer}))
	address, server, err := system.Serve(mux)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	t.Lender.Lend(system.Liar, address)
	_, err = t.evaluate(ctx, system.Liar, List("", "", 0))
	said := status.Convert(err)
	if said.Code() == codes.NotFound {
		return fmt.Errorf("the gateway says NotFound because a pod says: %w", answer)
	}
	for _, detail := range said.Details() {
		if hint, ok := detail.(*errdetails.RetryInfo); ok && hint.GetRetryDelay().AsDuration() > longestRetry {
			return fmt.Errorf("the gateway passes on that callers wait for %v: %w", hint.GetRetryDelay().AsDuration(), answer)
		}
	}
	return nil
}
