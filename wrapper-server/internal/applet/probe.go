// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Exit codes of the applet grpc-health-probe, the same as in the original tool, and the applet's default timeout.
const (
	probeUsage       = 1
	probeConnection  = 2
	probeCall        = 3
	probeNotServing  = 4
	defaultProbeWait = time.Second
)

// Probe implements the applet "grpc-health-probe -addr HOST:PORT". It returns 0 if the server reports SERVING.
func Probe(args []string) int {
	flags := flag.NewFlagSet("grpc-health-probe", flag.ContinueOnError)
	addr := flags.String("addr", "", "server to ask, as host:port")
	service := flags.String("service", "", "service to ask for; empty means the whole server")
	connectTimeout := flags.Duration("connect-timeout", defaultProbeWait, "how long connecting may take")
	callTimeout := flags.Duration("rpc-timeout", defaultProbeWait, "how long the answer may take")
	if err := flags.Parse(args); err != nil {
		return probeUsage
	}
	if *addr == "" || flags.NArg() > 0 {
		complain("grpc-health-probe", "usage: grpc-health-probe -addr HOST:PORT")
		return probeUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), *connectTimeout+*callTimeout)
	defer cancel()
	return probeHealth(ctx, strings.TrimPrefix(*addr, "passthrough:///"), *service)
}

// probeHealth sends a single health check and returns the exit code.
func probeHealth(ctx context.Context, addr, service string) int {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := connect.NewClient[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse](
		&http.Client{Transport: transport}, "http://"+addr+grpc_health_v1.Health_Check_FullMethodName, connect.WithGRPC())
	resp, err := client.CallUnary(ctx, connect.NewRequest(&grpc_health_v1.HealthCheckRequest{Service: service}))
	if err != nil {
		complain("grpc-health-probe", "ask %s: %v", addr, err)
		if connect.CodeOf(err) == connect.CodeUnavailable || errors.Is(err, os.ErrDeadlineExceeded) {
			return probeConnection
		}
		return probeCall
	}
	if status := resp.Msg.GetStatus(); status != grpc_health_v1.HealthCheckResponse_SERVING {
		complain("grpc-health-probe", "%s is %v", addr, status)
		return probeNotServing
	}
	return 0
}
