// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

// warmShare is the divisor of the connect timeout for a pod that has been used before. If such a pod accepts no
// connection within a fifth of the timeout, it is probably gone. A pod that failed in an earlier attempt gets the whole
// timeout. It is probably not gone, because the pod-manager has since checked that it works.
const warmShare = 5

func (e *Evaluator) callPod(
	ctx context.Context, req evaluation.Request, granted *lease.Granted, tried *tries,
) (out evaluation.Response, err error) {
	msg := &evaluator.EvaluateFunctionRequest{ResourceList: req.ResourceList, Image: req.Given}
	limit := int(granted.GetMaxMessageBytes())
	if size := proto.Size(msg); limit > 0 && size > limit {
		return evaluation.Response{}, fault.New(fault.Exhausted,
			"%sthe request has %d bytes, and the function's pods take up to %d: "+
				"make the package smaller, or raise the pods' message limit",
			evaluatePrefix(req.Given), size, limit)
	}
	conn, err := e.cfg.Conns.Get(podconn.Pod{
		UID: granted.GetPodUid(), Address: granted.GetAddress(),
		ID: granted.GetIdentity().GetId(), Secret: granted.GetIdentity().GetSecret(),
	})
	if err != nil {
		return evaluation.Response{}, &brokenPodError{pod: granted.GetPod(), cause: err, notCalled: true}
	}
	defer func() {
		_, broken := errors.AsType[*brokenPodError](err)
		conn.Release(broken)
	}()
	resp, err := e.callOn(ctx, conn, req, msg, granted, tried.triedPod(granted.GetPod()))
	if err != nil {
		return evaluation.Response{}, err
	}
	out = evaluation.Response{ResourceList: resp.GetResourceList(), Log: resp.GetLog(), Digest: granted.GetDigest()}
	out.Results, err = parseResults(ctx, req.Given, out.ResourceList)
	if err != nil {
		return evaluation.Response{}, err
	}
	return out, nil
}

// parseResults checks the resource list in a pod's answer, and returns the list's results. Usually the server in the
// pod has already checked the list. However, another program in the pod may have sent the answer. An invalid list from
// such a program must not get into the caller's package.
func parseResults(ctx context.Context, image string, list []byte) ([]resourcelist.Result, error) {
	start := time.Now()
	results, err := resourcelist.Parse(ctx, list)
	switch {
	case err == nil:
		return results, nil
	case ctx.Err() != nil:
		return nil, interruptedError(ctx, image, time.Since(start), "reading what the function wrote")
	default:
		return nil, fault.New(fault.Internal, "%sthe pod's answer is not valid: %w", evaluatePrefix(image),
			&evaluation.ListError{Err: err})
	}
}

// callOn sends the request msg to a pod. It first connects conn if necessary. The argument again is true if an earlier
// attempt of the evaluation used the same pod.
func (e *Evaluator) callOn(
	ctx context.Context, conn *podconn.Conn, req evaluation.Request,
	msg *evaluator.EvaluateFunctionRequest, granted *lease.Granted, again bool,
) (*evaluator.EvaluateFunctionResponse, error) {
	start, image := time.Now(), req.Given
	if !conn.Connected() {
		req.Measured.Enter("connect")
		if err := e.connectPod(ctx, conn, req, granted, again); err != nil {
			return nil, notCalled(ctx, image, granted.GetPod(), time.Since(start), err)
		}
	}
	req.Measured.Enter("run")
	called := time.Now()
	resp, err := conn.EvaluateFunction(ctx, msg, callOptions(granted)...)
	took := time.Since(called)
	req.Measured.Took(ctx, "run", took)
	return resp, convertError(ctx, image, granted.GetPod(), took, err)
}

// callOptions returns gRPC options for the pod's maximum message size. It returns nil if the pod has no maximum.
func callOptions(granted *lease.Granted) []grpc.CallOption {
	limit := int(granted.GetMaxMessageBytes())
	if limit <= 0 {
		return nil
	}
	return []grpc.CallOption{grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)}
}

// connectPod waits until conn is connected, or until the pod's connect timeout has passed. If the DNS lookup fails, the
// pod may still exist. In this case, connectPod waits for the whole timeout of a new pod.
func (e *Evaluator) connectPod(
	ctx context.Context, conn *podconn.Conn, req evaluation.Request, granted *lease.Granted, again bool,
) error {
	start := time.Now()
	err := connectWithin(ctx, conn, connectTimeout(e.cfg.ConnectTimeout, granted.GetColdStart() || again))
	if err != nil && nameUnknown(err) {
		err = connectWithin(ctx, conn, e.cfg.ConnectTimeout-time.Since(start))
	}
	if err != nil {
		return fmt.Errorf("no connection within %v: %w", time.Since(start).Round(time.Millisecond), err)
	}
	countConnect(ctx, req, granted, time.Since(start))
	return nil
}

// connectTimeout returns the timeout for connecting to a pod. A new pod gets the whole setting, and a pod that has
// been used before gets a fifth (see warmShare).
func connectTimeout(setting time.Duration, isNew bool) time.Duration {
	if isNew {
		return setting
	}
	return setting / warmShare
}

func connectWithin(ctx context.Context, conn *podconn.Conn, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return conn.Connect(limited)
}

// nameUnknown reports whether a failed DNS lookup caused err. The DNS name of a new pod may not exist yet, so a retry
// may succeed.
func nameUnknown(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// lookupFailed reports whether err means that the name servers did not answer. The pod may then still exist. If the
// name servers answered that the name does not exist, the pod's Service was deleted, and lookupFailed returns false.
func lookupFailed(err error) bool {
	lookup, ok := errors.AsType[*net.DNSError](err)
	return ok && !lookup.IsNotFound
}
