// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// BenchmarkMemoryInFlight has a gateway, as a program of its own, evaluate 100 requests of 5 MB at a time in a
// pod, which answers none before it has all. It reports the peak of the gateway's resident memory over the bytes of
// the requests, for functions that return nothing much, and for functions that return as much as they got.
func BenchmarkMemoryInFlight(b *testing.B) {
	path := gobuild.Program(b, ".", ".")
	for _, returned := range []string{"little", "all"} {
		b.Run("returns="+returned, func(b *testing.B) {
			for b.Loop() {
				peak, payload := flood(b, path, 100, 5_000_000, returned == "all")
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
				b.ReportMetric(float64(peak)/float64(payload), "peak/requests")
				if returned == "all" { // all answers are there while all requests are
					b.ReportMetric(float64(peak)/float64(2*payload), "peak/in-flight")
				}
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// flood returns the peak of a new gateway's memory, and the bytes of the requests that it had at the same time.
func flood(b *testing.B, path string, requests, size int, echo bool) (peak, payload int) {
	b.Helper()
	const limit = 6 << 20
	var there atomic.Int64
	all := make(chan struct{})
	pod := testpod.Serve(b, limit, func(
		ctx context.Context, req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		if there.Add(1) == int64(requests) {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if echo {
			return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
		}
		return &evaluator.EvaluateFunctionResponse{ResourceList: []byte("kind: ResourceList\nitems: []\n")}, nil
	})
	manager := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return &lease.Granted{Address: pod, Pod: "pod", MaxMessageBytes: limit}, nil
	})
	pid, address := startProgram(b, path, "FNR_DISABLE_RUNTIMES=exec", "FNR_MEMORY_BUDGET_BYTES=4000000000",
		"FNR_POD_MANAGER=http://"+leaseserver.Start(b, manager))
	conn := servetest.Dial(b, address,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limit), grpc.WaitForReady(true)))
	health := grpc_health_v1.NewHealthClient(conn)
	if _, err := health.Check(b.Context(), new(grpc_health_v1.HealthCheckRequest)); err != nil {
		b.Fatal(err)
	}
	req := &evaluator.EvaluateFunctionRequest{Image: "example.com/fn/echo:v1", ResourceList: listOf(size)}
	var callers sync.WaitGroup
	for range requests {
		callers.Go(func() {
			if _, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(b.Context(), req); err != nil {
				b.Error(err)
			}
		})
	}
	callers.Wait()
	return peakOf(b, pid), requests * len(req.GetResourceList())
}

// startProgram starts the gateway with variables, and returns its process and its address.
func startProgram(b *testing.B, path string, env ...string) (pid int, address string) {
	b.Helper()
	listener := servetest.Listen(b)
	address = listener.Addr().String()
	_ = listener.Close()
	cmd := exec.CommandContext(b.Context(), path)
	cmd.Env = append(slices.Clone(env),
		"FNR_ADDRESS="+address, "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Wait() // the context has ended
		if b.Failed() {
			b.Logf("the gateway's log:\n%s", log.Bytes())
		}
	})
	return cmd.Process.Pid, address
}

// peakOf returns the most memory, in bytes, that a process has had resident.
func peakOf(b *testing.B, pid int) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		b.Fatalf("read the peak of the process: %v", err)
	}
	return kib << 10
}

// listOf returns a resource list of about so many bytes.
func listOf(size int) []byte {
	var list bytes.Buffer
	list.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := 0; list.Len() < size; i++ {
		fmt.Fprintf(&list, "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: settings-%d\n"+
			"  data:\n    key: %s\n", i, strings.Repeat("value", 20))
	}
	return list.Bytes()
}
