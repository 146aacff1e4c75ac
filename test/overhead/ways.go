// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// maxMessage is the maximum size in bytes of the gRPC messages in the measurements.
const maxMessage = 16 << 20

// bareProcess returns a function that evaluates a resource list by starting the program.
func bareProcess(binary string) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, list []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, binary)
		cmd.Stdin = bytes.NewReader(list)
		return cmd.Output()
	}
}

// remoteWay returns a function that evaluates a resource list by calling a gRPC server.
func remoteWay(conn *grpc.ClientConn, image string) func(context.Context, []byte) ([]byte, error) {
	client := evaluator.NewFunctionEvaluatorClient(conn)
	return func(ctx context.Context, list []byte) ([]byte, error) {
		resp, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: list})
		return resp.GetResourceList(), err
	}
}

// server is a gRPC server under measurement. It runs in a child process, and conn is a connection to it.
type server struct {
	cmd  *exec.Cmd
	conn *grpc.ClientConn
}

func (b *bench) startGateway(ctx context.Context, env ...string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	return b.startServer(ctx, port, env, filepath.Join(b.bin, "function-runner"), "--port", port, "--disable-runtimes=pod",
		"--functions", b.functions, "--config", filepath.Join(b.functions, "config.yaml"), "--log-level", b.logLevel,
		"--max-request-body-size", strconv.Itoa(maxMessage))
}

func (b *bench) startWrapper(ctx context.Context, binary string, env []string, flags ...string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	flags = append(flags, "--port", port, "--verbosity=1", "--max-request-body-size", strconv.Itoa(maxMessage),
		"--telemetry-metrics-address=off", "--serve-drain-delay=0s", "--", binary)
	return b.startServer(ctx, port, env, filepath.Join(b.bin, "wrapper-server"), flags...)
}

// startServer starts a server and waits until it is healthy. env is added to the environment of this process.
func (b *bench) startServer(ctx context.Context, port string, env []string, program string, args ...string) (
	*server, error,
) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cmd.Environ(), "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = b.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, conn: conn}
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("wait for %s: %w", program, err)
	}
	return s, nil
}

// stop sends SIGTERM to the server and waits until it has exited.
func (s *server) stop() {
	_ = s.conn.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// freePort returns an unused port of the loopback address.
func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
