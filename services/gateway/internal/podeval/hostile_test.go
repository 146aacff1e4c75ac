// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// withDetails returns err with details.
func withDetails(t *testing.T, err *connect.Error, details ...proto.Message) *connect.Error {
	t.Helper()
	for _, msg := range details {
		d, detailErr := connect.NewErrorDetail(msg)
		if detailErr != nil {
			t.Fatal(detailErr)
		}
		err.AddDetail(d)
	}
	return err
}

// evaluateOn evaluates on one pod that answers with err, or with a list if err is nil.
func evaluateOn(t *testing.T, list string, err error) error {
	t.Helper()
	answer := func(context.Context, *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
		return &evaluator.EvaluateFunctionResponse{ResourceList: []byte(list)}, err
	}
	var got error
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		testpod.ServeAt(t, &network, "a:9446", 1<<20, answer)
		m := leasetest.NewManager(pods(pod("a", "a:9446")))
		_, got = newEvaluatorIn(t, &network, m).Evaluate(t.Context(), newRequest())
	})
	return got
}

// TestNoCodeOfAPodIsNotFound has pods that answer with each code, with and without the
// details of a wrapper server.
func TestNoCodeOfAPodIsNotFound(t *testing.T) {
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		for _, details := range [][]proto.Message{
			nil,
			{&functionrunnerv1.FunctionFailure{ExitCode: 1}, &errdetails.RetryInfo{}},
		} {
			err := evaluateOn(t, "", withDetails(t, connect.NewError(code, errors.New("x")), details...))
			switch got := fault.Of(err); {
			case err == nil:
				t.Errorf("%v with %d details is no error", code, len(details))
			case got == fault.NotFound, got == fault.Unimplemented, got == fault.Canceled:
				t.Errorf("%v with %d details is %v, of class %v", code, len(details), err, got)
			}
		}
	}
}

// TestWhatAPodSaysIsBounded has a pod that answers with as much as it can.
func TestWhatAPodSaysIsBounded(t *testing.T) {
	large := strings.Repeat("x", 20<<10)
	results := make([]*functionrunnerv1.Result, 1000)
	for i := range results {
		results[i] = &functionrunnerv1.Result{Message: "m", Tags: map[string]string{"a": "b"}}
	}
	failure := &functionrunnerv1.FunctionFailure{
		Image: "other", Reason: function.Exited, Signal: large, Stderr: large, Results: results,
	}
	err := evaluateOn(t, "", withDetails(t, connect.NewError(connect.CodeInternal, errors.New(large)), failure,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(24 * 365 * time.Hour)}))
	if len(err.Error()) > 17<<10 || !utf8.ValidString(err.Error()) {
		t.Errorf("the text has %d bytes", len(err.Error()))
	}
	if after, ok := fault.RetryAfter(err); !ok || after > 5*time.Minute {
		t.Errorf("retry after %v, %v, want some minutes at most", after, ok)
	}
	got, ok := errors.AsType[*function.Failure](err)
	if !ok {
		t.Fatalf("error %.200v, want a function's failure", err)
	}
	detail, _ := got.Detail().(*functionrunnerv1.FunctionFailure)
	size, passed, omitted := proto.Size(detail), len(detail.GetResults()), int(detail.GetResultsOmitted())
	if size > 16<<10 || passed+omitted != len(results) {
		t.Errorf("the detail has %d bytes, %d results and %d omitted", size, passed, omitted)
	}
	sent, _ := errors.AsType[*connect.Error](rpcfault.ToConnect(err))
	if len(sent.Message()) > 9<<10 || len(sent.Details()) > 2 {
		t.Errorf("the caller gets a text of %d bytes and %d details", len(sent.Message()), len(sent.Details()))
	}
}

// TestHeadersOfAPodAreBounded has a pod whose answer has larger headers or trailers than any
// wrapper server sends: it counts as broken.
func TestHeadersOfAPodAreBounded(t *testing.T) {
	for name, add := range map[string]func(*connect.Error, string){
		"message": func(err *connect.Error, large string) { *err = *connect.NewError(err.Code(), errors.New(large)) },
		"headers": func(err *connect.Error, large string) { err.Meta().Set("X-Large", large) },
	} {
		answer := connect.NewError(connect.CodeInternal, errors.New("x"))
		add(answer, strings.Repeat("x", 200<<10))
		if err := evaluateOn(t, "", answer); fault.Of(err) != fault.Unavailable || len(err.Error()) > 1<<10 {
			t.Errorf("%s: error of class %v and %d bytes: %.200v", name, fault.Of(err), len(err.Error()), err)
		}
	}
}

// TestAnAnswerThatIsNoList has pods whose answer would break the caller's package.
func TestAnAnswerThatIsNoList(t *testing.T) {
	const prefix = "unable to evaluate fn:v1 with pod evaluator: the pod's answer is not valid: "
	for _, answer := range []string{"", "nothing", "kind: List\n", "kind: ResourceList\nitems: {}\n", "kind: \xff\n"} {
		err := evaluateOn(t, answer, nil)
		if fault.Of(err) != fault.Internal || !strings.HasPrefix(err.Error(), prefix) {
			t.Errorf("%q: error %v of class %v, want an internal one", answer, err, fault.Of(err))
		}
	}
}
