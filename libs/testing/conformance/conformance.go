// SPDX-License-Identifier: Apache-2.0

// Package conformance contains the requirements for every implementation of Porch's FunctionEvaluator service, as
// tests that run against any of them: the wrapper server, the gateway with its exec evaluator, and the gateway with
// pods. The functions that the tests evaluate are in package testfn.
package conformance

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// Target is an implementation under test.
type Target struct {
	// Serve starts to serve the function with the given behaviour until t ends, and returns the served function. It
	// is called at least once for each behaviour.
	Serve func(t *testing.T, behaviour string) Function
	// Texts contains the texts of failures, which differ between Porch's evaluators.
	Texts Texts
	// NamesFunctions is true for gateways, which serve many functions and select the function by its image. Gateways
	// check requests before they evaluate them.
	NamesFunctions bool
	// UnknownImage is the code for an image that does not exist. OK means NotFound. It is used only if NamesFunctions
	// is true.
	UnknownImage codes.Code
}

// Function is a served function.
type Function struct {
	// Address is the server's address, as host:port.
	Address string
	// Image is the image to request the function by.
	Image string
	// Dir is the directory of the implementation's binary if this process starts it, so that the suite can look for
	// leftover processes. It is empty for a remote implementation.
	Dir string
}

// Texts contains patterns of the texts of failures. In them, %[1]q stands for the image.
type Texts struct {
	// Prefix is the beginning of the texts of all failures.
	Prefix string
	// Exit1 is the text for a function that exits with 1, results and a log.
	Exit1 string
	// Exit1Garbage is the text for a function that exits with 1 and an output that does not parse.
	Exit1Garbage string
	// Signal is the text for a function that kills itself. It is empty if a function cannot kill itself, because it
	// is the first process of a pid namespace. This is so with crun and runc, and in containers.
	Signal string
}

// PodTexts returns the texts of Porch's pod evaluator, with a prefix. Sandboxes and wrapper servers use the same
// texts.
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

// MaxMessageBytes is the message limit to configure targets with.
const MaxMessageBytes = 6 << 20

// List is a small input.
const List = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// Run runs the suite. It also checks that after each case no process of the function is left while the server still
// runs.
func Run(t *testing.T, target Target) {
	target.Serve = leaveNothing(target.Serve)
	t.Run("passes bytes through", func(t *testing.T) { testBytes(t, target) })
	t.Run("failures", func(t *testing.T) { testFailures(t, target) })
	t.Run("limits", func(t *testing.T) { testLimits(t, target) })
	t.Run("bad requests", func(t *testing.T) { testBadRequests(t, target) })
	t.Run("callers that cancel", func(t *testing.T) { testCancel(t, target) })
	t.Run("protocols", func(t *testing.T) { testProtocols(t, target) })
	t.Run("health and reflection", func(t *testing.T) { testHealth(t, target) })
	t.Run("many callers", func(t *testing.T) { testManyCallers(t, target) })
}

// leaveNothing wraps serve. It checks at the end of each case, before the server stops, that the function has left no
// process.
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

// dialServer returns a connection of the official gRPC client.
func dialServer(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.MaxCallSendMsgSize(16<<20)))
	if err != nil {
		t.Fatalf("connect to %s: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func evaluateList(t *testing.T, f Function, list string) (*evaluator.EvaluateFunctionResponse, error) {
	t.Helper()
	client := evaluator.NewFunctionEvaluatorClient(dialServer(t, f.Address))
	return client.EvaluateFunction(t.Context(), newRequest(f, list))
}

func newRequest(f Function, list string) *evaluator.EvaluateFunctionRequest {
	return &evaluator.EvaluateFunctionRequest{Image: f.Image, ResourceList: []byte(list)}
}

// checkOthers fails the test if a server of many functions no longer evaluates other functions.
func checkOthers(t *testing.T, target Target) {
	t.Helper()
	if target.NamesFunctions {
		checkAlive(t, target.Serve(t, "echo"))
	}
}

// checkAlive fails the test if the server no longer evaluates f, which must return its input.
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
