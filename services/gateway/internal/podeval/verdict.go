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

// brokenPodError is the error for a pod that did not answer, or that gave an answer that no wrapper server gives. The
// evaluation may succeed on another pod.
type brokenPodError struct {
	pod   string
	cause error
	// notCalled is true if the evaluation was not sent to the pod.
	notCalled bool
}

func (e *brokenPodError) Error() string { return fmt.Sprintf("pod %s broke: %v", e.pod, e.cause) }

func (e *brokenPodError) Unwrap() error { return e.cause }

// notCalled returns the error for a pod to which no connection could be established.
func notCalled(ctx context.Context, image, pod string, took time.Duration, err error) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, image, took, fmt.Sprintf("connecting to pod %s (%v)", pod, err))
	}
	return &brokenPodError{pod: pod, cause: err, notCalled: true}
}

// convertError converts the error of a call to a pod. An answer of a wrapper server becomes the error for the caller,
// with the same class and details. If the pod is broken, convertError returns a brokenPodError.
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

// maxMessageBytes limits the error message in a pod's status. Messages of a wrapper server have at most about half
// this length.
const maxMessageBytes = 16 << 10

// statusMessage returns the message of a pod's status for errors and logs. It shortens the message and makes it valid
// UTF-8, because a pod may send any bytes.
func statusMessage(st *status.Status) string {
	return strings.ToValidUTF8(excerpt.Middle(st.Message(), maxMessageBytes), "\uFFFD")
}

// breaksPod reports whether a pod that answers with code counts as broken. byWrapper is true if the answer contains
// details that only a wrapper server sends. A wrapper server never answers NotFound, Unimplemented or Canceled, with
// or without such details. We must not pass these codes on, because callers would conclude that another runtime
// serves the image, or that they have left. Unavailable, Unknown and DeadlineExceeded may be from a proxy or from
// gRPC itself, so they break the pod unless byWrapper is true.
func breaksPod(code codes.Code, byWrapper bool) bool {
	switch code {
	case codes.Unimplemented, codes.NotFound, codes.Canceled:
		return true
	case codes.Unavailable, codes.Unknown, codes.DeadlineExceeded:
		return !byWrapper
	default:
		return false
	}
}

// details are the known error details of a gRPC status.
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

// byWrapper reports whether a status contains details that only a wrapper server sends.
func (d details) byWrapper() bool { return d.function != nil || d.retry != nil }

// wrapperError returns the wrapper server's error for the caller. If the wrapper server's queue is full, the error
// keeps its retry hint and the evaluator does not try another pod, because the pod works and the pod-manager decides
// when to add pods.
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
