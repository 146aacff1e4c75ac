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

// warmShare is the divisor of the connect timeout for a pod that is neither new nor retried. Such a pod gets less
// time because, if it does not accept connections, it is probably gone. A retried pod gets the whole timeout, because
// it has since answered a health check of the pod-manager.
const warmShare = 5

func (e *Evaluator) callPod(
	ctx context.Context, req evaluation.Request, granted *lease.Granted, tried *tries,
) (evaluation.Response, error) {
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
	resp, err := e.callOn(ctx, conn, req, msg, granted, tried.triedPod(granted.GetPod()))
	_, broken := errors.AsType[*brokenPodError](err)
	conn.Release(broken)
	if err != nil {
		return evaluation.Response{}, err
	}
	out := evaluation.Response{ResourceList: resp.GetResourceList(), Log: resp.GetLog(), Digest: granted.GetDigest()}
	out.Results, err = parseResults(ctx, req.Given, out.ResourceList)
	if err != nil {
		return evaluation.Response{}, err
	}
	return out, nil
}

// parseResults returns the results in a pod's answer. It checks the resource list again, although a wrapper server
// has already checked it: another program could answer in the pod, and its invalid list must not get into a package.
func parseResults(ctx context.Context, image string, list []byte) ([]resourcelist.Result, error) {
	start := time.Now()
	envelope, err := resourcelist.Parse(ctx, list)
	switch {
	case err == nil:
		return envelope.Results, nil
	case ctx.Err() != nil:
		return nil, interruptedError(ctx, image, time.Since(start), "reading what the function wrote")
	default:
		return nil, fault.New(fault.Internal, "%sthe pod's answer is not valid: %w", evaluatePrefix(image), err)
	}
}

// callOn connects conn if necessary, and calls the pod. again is true if the evaluation has already tried this pod.
func (e *Evaluator) callOn(
	ctx context.Context, conn *podconn.Conn, req evaluation.Request,
	msg *evaluator.EvaluateFunctionRequest, granted *lease.Granted, again bool,
) (*evaluator.EvaluateFunctionResponse, error) {
	start, image := time.Now(), req.Given
	if !conn.Connected() {
		req.Measured.Enter("connect")
		if err := e.connectPod(ctx, conn, granted, again); err != nil {
			return nil, notCalled(ctx, image, granted.GetPod(), time.Since(start), err)
		}
	}
	req.Measured.Enter("run")
	called := time.Now()
	resp, err := conn.EvaluateFunction(ctx, msg, callOptions(granted)...)
	took := time.Since(called)
	e.metrics.phases.Took(ctx, "run", took)
	return resp, convertError(ctx, image, granted.GetPod(), took, err)
}

// callOptions returns the options for the pod's own message limit. They are nil if the pod has no limit of its own.
func callOptions(granted *lease.Granted) []grpc.CallOption {
	limit := int(granted.GetMaxMessageBytes())
	if limit <= 0 {
		return nil
	}
	return []grpc.CallOption{grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)}
}

// connectPod returns when the connection is established, or when the pod's connect timeout or ctx ends. If the lookup
// of the pod's DNS name fails, connectPod retries for the timeout of a new pod, because a failed lookup does not mean
// that the pod is gone.
func (e *Evaluator) connectPod(ctx context.Context, conn *podconn.Conn, granted *lease.Granted, again bool) error {
	start := time.Now()
	err := connectWithin(ctx, conn, connectTimeout(e.cfg.ConnectTimeout, granted.GetColdStart() || again))
	if err != nil && nameUnknown(err) {
		err = connectWithin(ctx, conn, e.cfg.ConnectTimeout-time.Since(start))
	}
	if err != nil {
		return fmt.Errorf("no connection within %v: %w", time.Since(start).Round(time.Millisecond), err)
	}
	e.metrics.countConnect(ctx, granted, time.Since(start))
	return nil
}

// connectTimeout returns the connect timeout of a pod: the whole setting for a new pod, otherwise the setting divided
// by warmShare.
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

// nameUnknown reports whether err is the error of a DNS lookup.
func nameUnknown(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// lookupFailed reports whether a DNS lookup got no answer from the name servers. If they answer that the name does
// not exist, the lookup has not failed: the pod's Service was deleted.
func lookupFailed(err error) bool {
	lookup, ok := errors.AsType[*net.DNSError](err)
	return ok && !lookup.IsNotFound
}
