// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// hop is a minimal gRPC server that starts a new process of the function for each call, without any checks. Its
// additional time compared with a bare process is the cost of gRPC on this machine. The additional time of the gateway
// or the wrapper-server compared with hop is the cost of their own code.
type hop struct {
	evaluator.UnimplementedFunctionEvaluatorServer
	evaluate func(context.Context, []byte) ([]byte, error)
}

func (h hop) EvaluateFunction(ctx context.Context,
	req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	out, err := h.evaluate(ctx, req.GetResourceList())
	return &evaluator.EvaluateFunctionResponse{ResourceList: out}, err
}

// startHop starts a minimal gRPC server for functions, as another process of this program.
func (b *bench) startHop(ctx context.Context) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return b.startServer(ctx, port, nil, self, "-hop", port, "-functions", b.functions, "-function", b.function)
}

// serveHop serves evaluations on a port until ctx ends. It starts a new process of the program for each evaluation.
func serveHop(ctx context.Context, port, binary string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	evaluator.RegisterFunctionEvaluatorServer(s, hop{evaluate: bareProcess(binary)})
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	defer context.AfterFunc(ctx, s.GracefulStop)()
	return s.Serve(listener)
}
