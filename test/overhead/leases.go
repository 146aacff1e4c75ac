// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// lender is a minimal pod-manager without Kubernetes. It uses the same server, access control and streams as the real
// pod-manager. It grants leases only for a single pod, a wrapper-server on this machine.
type lender struct {
	lease.Manager

	// address is the lender's own address. directory contains the lender's certificate. It is empty for plaintext.
	address, directory string
	pod                *lease.Granted
}

// Lease implements lease.Manager.
func (l *lender) Lease(context.Context, *lease.Open, func(*lease.Waiting)) (lease.Lease, error) {
	return grantedPod{l.pod}, nil
}

// grantedPod is the lease that the lender grants to every caller. It always contains the lender's only pod.
type grantedPod struct{ pod *lease.Granted }

func (l grantedPod) Granted() *lease.Granted      { return l.pod }
func (l grantedPod) Finish(lease.Outcome, string) {}

// serve runs the lender until ctx ends.
func (l *lender) serve(ctx context.Context) error {
	settings := servermain.Settings{
		Serve:     serve.Config{ShutdownTimeout: time.Minute},
		Telemetry: telemetry.Config{MetricsAddress: "off", LogFormat: "json", LogVerbosity: 1},
		TLS:       mtls.Config{Directory: l.directory},
	}
	build := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
		access, err := rpcserve.Callers(frame.Identity, []string{gatewayID})
		if err != nil {
			return nil, err
		}
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: podmanagerv1connect.PodManagerServiceName, Streams: true,
			MaxRequestBytes: lease.MaxRequestBytes, MaxResponseBytes: 1 << 20,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				return podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(frame.Health.Stopping, l), options...)
			},
		})
		return []serve.Component{{Endpoints: []serve.Endpoint{{
			Name: "lender", Address: l.address, Handler: handler, MaxStreams: 1000, TLS: frame.Identity.Server(),
		}}}}, nil
	}
	return servermain.Run(ctx, "lender", settings, build)
}

// parse reads the lender's command line.
func (l *lender) parse(args []string) error {
	if len(args) != 5 {
		return errors.New("a lender takes its address, its directory, and its pod's address, ID and secret")
	}
	l.address = args[0]
	l.directory = args[1]
	l.pod = &lease.Granted{
		Address: args[2], Pod: "pod", Namespace: "porch-fn-system", PodUid: "uid", Reference: "example.com/fn:v1",
		MaxMessageBytes: maxMessage,
	}
	if args[3] != "" {
		l.pod.Identity = &podmanagerv1.PodIdentity{Id: args[3], Secret: args[4]}
	}
	return nil
}
