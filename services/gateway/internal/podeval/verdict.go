// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// brokenPodError means that a pod failed, so that the evaluation may succeed on another pod. Either the pod does not
// answer, or a program other than the pod's server answers.
type brokenPodError struct {
	pod   string
	cause error
	// notCalled is true if the request was not sent to the pod, so that the function cannot have started.
	notCalled bool
}

func (e *brokenPodError) Error() string { return fmt.Sprintf("pod %s broke: %v", e.pod, e.cause) }

func (e *brokenPodError) Unwrap() error { return e.cause }

// notCalled returns the error for an evaluation that could not connect to its pod.
func notCalled(ctx context.Context, image, pod string, took time.Duration, err error) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, image, took, fmt.Sprintf("connecting to pod %s (%v)", pod, err))
	}
	return &brokenPodError{pod: pod, cause: err, notCalled: true}
}

// convertError converts the error of a call to a pod into the error for the caller. An error from the server in the
// pod keeps its class and details. If the pod has failed, convertError returns a brokenPodError.
func convertError(ctx context.Context, image, pod string, took time.Duration, err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	if st.Code() == codes.DeadlineExceeded && retry.NearDeadline(ctx) {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return interruptedError(ctx, image, took, "the function was running in pod "+pod)
	}
	received := readDetails(st)
	if breaksPod(st.Code(), received.byWrapper()) {
		return &brokenPodError{pod: pod, cause: errors.New(statusMessage(st))}
	}
	return received.wrapperError(image, st)
}

// maxMessageBytes limits the length of an error message from a pod. The limit is necessary because programs other than
// the pod's server may answer. Messages of the pod's server are at most half as long.
const maxMessageBytes = 16 << 10

// statusMessage returns the error message in a pod's answer for errors and logs. It shortens the message and makes
// it valid UTF-8, because a pod may send any bytes.
func statusMessage(st *status.Status) string {
	return strings.ToValidUTF8(excerpt.Middle(st.Message(), maxMessageBytes), "\uFFFD")
}

// breaksPod reports whether an answer with the gRPC status code means that the pod has failed. byWrapper is true if
// the answer is certainly from the wrapper server, the server in a function pod.
func breaksPod(code codes.Code, byWrapper bool) bool {
	switch code {
	case codes.Unimplemented, codes.NotFound, codes.Canceled:
		// The server in a function pod never sends these codes. They must not reach the caller. The caller would conclude
		// that another runtime serves the image, or that it canceled the request itself.
		return true
	case codes.Unavailable, codes.Unknown, codes.DeadlineExceeded:
		// The wrapper server of a working pod may send these codes. From a proxy or gRPC, they mean that the pod has failed.
		return !byWrapper
	default:
		return false
	}
}

// details contains the known error details in the status of a pod's answer. A missing detail is nil.
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

// byWrapper reports whether an answer is certainly from the wrapper server, the server in a function pod. Only that
// server adds the details d.function and d.retry to its errors.
func (d details) byWrapper() bool { return d.function != nil || d.retry != nil }

// wrapperError converts an error from the server in a function pod into the error for the caller. If that server's
// queue is full, the error tells the client when to retry. The gateway does not retry on another pod, because this pod
// works. The pod-manager alone decides when to start more pods.
func (d details) wrapperError(image string, st *status.Status) error {
	text := evaluatePrefix(image) + statusMessage(st)
	class := rpcfault.Class(connect.Code(st.Code()))
	err := fault.New(class, "%s", text)
	if d.function != nil {
		err = fault.New(class, "%w", function.Received(text, d.function))
	}
	if d.retry != nil {
		err = fault.WithRetryAfter(err, rpcfault.RetryAfter(d.retry))
	}
	return err
}
