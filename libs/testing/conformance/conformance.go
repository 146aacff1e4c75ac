// SPDX-License-Identifier: Apache-2.0

// Package conformance contains tests for all implementations of Porch's FunctionEvaluator service: the wrapper server
// inside function pods, the gateway with local binaries, and the gateway with function pods. The tests evaluate the
// functions of package testfn.
package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// Target is an implementation of the FunctionEvaluator service under test.
type Target struct {
	// Serve starts a server for a function with the given behaviour, such as "echo" or "hang". The server runs until t
	// ends. The suite calls Serve at least once for each behaviour.
	Serve func(t *testing.T, behaviour string) Function
	// Texts contains the expected error messages, which differ between Porch's evaluators.
	Texts Texts
	// NamesFunctions is true for gateways. A gateway serves many functions, selects one by the image in the request,
	// and rejects invalid requests before the evaluation.
	NamesFunctions bool
	// UnknownImage is the expected code for an image that does not exist. The default is NotFound. It is used only if
	// NamesFunctions is true.
	UnknownImage codes.Code
	// EvaluationsOnly leaves out the tests of requests that a server answers without an evaluation. Use it if the suite
	// runs for the same server with another evaluator.
	EvaluationsOnly bool
}

// Function is a function that the server under test evaluates.
type Function struct {
	// Address is the server's address, as host:port.
	Address string
	// Image is the image name in requests for this function.
	Image string
	// Dir is the directory of the function's binary. The suite uses it to find processes that the function left behind.
	// Dir is empty if the function runs on another machine.
	Dir string
}

// Texts contains the expected error messages for functions that fail. In them, %[1]q stands for the image and "…" for
// any text.
type Texts struct {
	// Prefix is the beginning of all error messages.
	Prefix string
	// Exit1 is the message for a function that exits with code 1 and writes results and a log.
	Exit1 string
	// Exit1Garbage is the message for a function that exits with code 1 and writes an invalid resource list.
	Exit1Garbage string
	// Signal is the message for a function that kills itself with a signal. Signal is empty if functions cannot kill
	// themselves, because they are the first process of a pid namespace. This is the case in containers and in sandboxes
	// with crun or runc.
	Signal string
}

// PodTexts returns the error messages of Porch's pod evaluator, which begin with prefix. Our sandboxes and function
// pods return the same messages.
func PodTexts(prefix string) Texts {
	return Texts{
		Prefix: prefix,
		Exit1: "failed to evaluate function %[1]q with structured results: " +
			"[error] apps/v1/Deployment/shop/cart spec.replicas: replicas must not be negative " +
			"and stderr: failed: one resource is invalid",
		Exit1Garbage: "failed to parse the output of function %[1]q with stderr 'failed halfway': exit status 1; …",
		Signal:       "failed to parse the output of function %[1]q with stderr 'about to die': signal: killed; …",
	}
}

// MaxMessageBytes is the message limit that the implementation under test must be configured with.
const MaxMessageBytes = 6 << 20

// List is a small ResourceList, the input of most tests.
const List = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// Run runs all tests against an implementation. Each test also checks that its function leaves no processes while
// the server still runs.
func Run(t *testing.T, target Target) {
	target.Serve = leaveNothing(target.Serve)
	t.Run("passes bytes through", func(t *testing.T) { testBytes(t, target) })
	t.Run("failures", func(t *testing.T) { testFailures(t, target) })
	t.Run("limits", func(t *testing.T) { testLimits(t, target) })
	t.Run("callers that cancel", func(t *testing.T) { testCancel(t, target) })
	t.Run("many callers", func(t *testing.T) { testManyCallers(t, target) })
	if target.EvaluationsOnly {
		return
	}
	t.Run("bad requests", func(t *testing.T) { testBadRequests(t, target) })
	t.Run("protocols", func(t *testing.T) { testProtocols(t, target) })
	t.Run("health and reflection", func(t *testing.T) { testHealth(t, target) })
}

// leaveNothing wraps the function serve, which starts a server. At the end of each test, while the server still runs,
// the wrapper checks that evaluations have left no processes.
func leaveNothing(serve func(*testing.T, string) Function) func(*testing.T, string) Function {
	return func(t *testing.T, behaviour string) Function {
		t.Helper()
		fn := serve(t, behaviour)
		if fn.Dir != "" {
			t.Cleanup(func() { testfn.AssertNoneAbandoned(t, fn.Dir) })
		}
		return fn
	}
}

// dialServer returns a connection for clients of the official gRPC library.
func dialServer(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	return servetest.Dial(t, address,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.MaxCallSendMsgSize(16<<20)))
}

func evaluateList(t *testing.T, f Function, list string) (*evaluator.EvaluateFunctionResponse, error) {
	t.Helper()
	client := evaluator.NewFunctionEvaluatorClient(dialServer(t, f.Address))
	return client.EvaluateFunction(t.Context(), newRequest(f, list))
}

func newRequest(f Function, list string) *evaluator.EvaluateFunctionRequest {
	return &evaluator.EvaluateFunctionRequest{Image: f.Image, ResourceList: []byte(list)}
}

// checkOthers fails the test if a server of several functions can no longer evaluate another function.
func checkOthers(t *testing.T, target Target) {
	t.Helper()
	if target.NamesFunctions {
		checkAlive(t, target.Serve(t, "echo"))
	}
}

// checkAlive fails the test unless the server still evaluates f, a function that returns its input.
func checkAlive(t *testing.T, f Function) {
	t.Helper()
	resp, err := evaluateList(t, f, List)
	if err != nil {
		t.Fatalf("afterwards the server does not work: %v", err)
	}
	if string(resp.GetResourceList()) != List {
		t.Fatalf("afterwards the server returns %q", resp.GetResourceList())
	}
}

// Install installs the function with the given behaviour in dir and returns the path of the function's binary. For the
// behaviour Missing, it installs nothing.
func Install(t *testing.T, dir, behaviour string) string {
	t.Helper()
	path := filepath.Join(dir, behaviour)
	switch behaviour {
	case Missing:
	case NotExecutable:
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatalf("install %s: %v", behaviour, err)
		}
	default:
		testfn.Install(t, dir, behaviour)
	}
	return path
}

// longLog is the behaviour of a function that logs twice the maximum, [function.MaxLogBytes], and returns its input.
const longLog = "greet=2097152"

// Behaviours returns all behaviours that the tests use, so that callers can prepare all functions in advance.
func Behaviours() []string {
	return []string{
		"echo", "warn", "ignore-stdin", "exit1", "exit1-garbage", "garbage", "empty", "signal", "bad-utf8",
		Missing, NotExecutable, "flood-stdout", longLog, "flood-both", "hang", "hang-with-child",
		"ignore-sigterm", "orphan", "daemon", "sleep=20ms",
	}
}

// Repository returns the image repository, without registry, for the function with the given behaviour.
func Repository(behaviour string) string {
	return "conformance/" + strings.ReplaceAll(behaviour, "=", "-")
}
