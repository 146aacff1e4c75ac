package podeval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/deadline"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// brokenPodError is a pod that did not answer, or not as a wrapper server does. The
// evaluation may succeed on another.
type brokenPodError struct {
	pod   string
	cause error
}

func (e *brokenPodError) Error() string { return fmt.Sprintf("pod %s broke: %v", e.pod, e.cause) }

func (e *brokenPodError) Unwrap() error { return e.cause }

// notCalled is the error for a pod to which there is no connection.
func notCalled(ctx context.Context, image, pod string, took time.Duration, err error) error {
	if ctx.Err() != nil {
		return left(ctx, image, took, fmt.Sprintf("connecting to pod %s (%v)", pod, err))
	}
	return &brokenPodError{pod: pod, cause: err}
}

// judge turns the end of a call, after the given time, into the error for the
// caller: nil, or what the wrapper server said, with its code and details, or a
// brokenPodError.
func judge(ctx context.Context, image, pod string, took time.Duration, err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	if st.Code() == codes.DeadlineExceeded && deadline.Near(ctx) {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return left(ctx, image, took, "the function was running in pod "+pod)
	}
	said := readDetails(st)
	if !said.byWrapper() && breaks(st.Code()) {
		return &brokenPodError{pod: pod, cause: errors.New(st.Message())}
	}
	return said.failure(image, st)
}

// breaks reports whether a pod that answers with code, without any of our details and to a
// caller who still waits, is broken: nobody answered, or somebody who is no wrapper
// server.
func breaks(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.Unimplemented, codes.NotFound, codes.Unknown, codes.Canceled, codes.DeadlineExceeded:
		return true
	default:
		return false
	}
}

// details are what a status carries beside its code and its text.
type details struct {
	function *functionrunnerv1.FunctionFailure
	retry    *errdetails.RetryInfo
}

func readDetails(st *status.Status) details {
	var d details
	for _, msg := range st.Details() {
		switch msg := msg.(type) {
		case *functionrunnerv1.FunctionFailure:
			d.function = msg
		case *errdetails.RetryInfo:
			d.retry = msg
		}
	}
	return d
}

// byWrapper reports whether only a wrapper server sends such details.
func (d details) byWrapper() bool { return d.function != nil || d.retry != nil }

// failure is the wrapper server's own error, as the caller gets it. A full queue is
// passed on with its hint: the pod is well, and pod-manager decides when there have
// to be more.
func (d details) failure(image string, st *status.Status) error {
	text := evaluatePrefix(image) + st.Message()
	class := rpcfault.Class(connect.Code(st.Code()))
	err := fault.New(class, "%s", text)
	if d.function != nil {
		err = fault.New(class, "%w", function.Received(text, d.function))
	}
	if d.retry != nil {
		err = fault.WithRetryAfter(err, d.retry.GetRetryDelay().AsDuration())
	}
	return err
}
