// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// fails evaluates the function, which must fail with a code and with texts in its message.
func (f *function) fails(t *testing.T, code codes.Code, words ...string) {
	t.Helper()
	start := time.Now()
	err := f.evaluateWithin(suite.Context(t), failureDeadline, 0)
	t.Logf("after %v: %v", time.Since(start).Round(time.Millisecond), err)
	if status.Code(err) != code {
		t.Errorf("the code is %v, want %v", status.Code(err), code)
	}
	for _, word := range words {
		if !strings.Contains(status.Convert(err).Message(), word) {
			t.Errorf("the message does not say %q", word)
		}
	}
}

// awaitEmpty waits until the function has no pod.
func (f *function) awaitEmpty(t *testing.T) {
	t.Helper()
	f.awaitPool(suite.Context(t), t, "no pod is left", func(p *podmanagerv1.Pool) bool { return len(p.GetPods()) == 0 })
}

// imageMissing: the registry reports it.
func imageMissing(t *testing.T, sys *system) {
	f := sys.function(t, s.Registry(t, "open").Host+"/test/sleep:missing")
	f.fails(t, codes.FailedPrecondition, f.image, "manifest unknown")
	f.awaitEmpty(t)
}

// imageWithoutRights: the registry reports it.
func imageWithoutRights(t *testing.T, sys *system) {
	f := sys.function(t, s.Registry(t, "private").Host+"/test/sleep:v1")
	f.fails(t, codes.FailedPrecondition, f.image, "UNAUTHORIZED: authentication required", "HTTP 401")
	f.awaitEmpty(t)
}

// imageNodeCannotPull: the kubelet reports it. The node expects TLS at that address.
func imageNodeCannotPull(t *testing.T, sys *system) {
	f := sys.function(t, s.Registry(t, "open").Alias+"/test/sleep:v1")
	f.fails(t, codes.FailedPrecondition, "ErrImagePull", "server gave HTTP response to HTTPS client")
	f.awaitEmpty(t)
}

// imageWithoutCommand: the image itself lacks the command.
func imageWithoutCommand(t *testing.T, sys *system) {
	f := sys.variant(t, "test/sleep", "no-command", func(config *v1.Config) { config.Entrypoint, config.Cmd = nil, nil })
	f.fails(t, codes.FailedPrecondition, f.image, "neither Entrypoint nor Cmd")
	f.awaitEmpty(t)
}

// containerNotStarted: the container runtime reports it. The image's working directory is a file.
func containerNotStarted(t *testing.T, sys *system) {
	f := sys.variant(t, "test/sleep", "not-started", func(config *v1.Config) { config.WorkingDir = functionProgram })
	f.fails(t, codes.FailedPrecondition, functionProgram)
	f.awaitEmpty(t)
}

// imageCrashes: the kubelet reports how the container ended. The image has a variable that is as long as the kernel
// takes, to which the wrapper server cannot add its prefix.
func imageCrashes(t *testing.T, sys *system) {
	f := sys.variant(t, "test/sleep", "crashes", func(config *v1.Config) {
		config.Env = append(config.Env, "LARGE="+strings.Repeat("x", 131060))
	})
	f.fails(t, codes.FailedPrecondition, `container "function" ended with exit code 2`, "argument list too long")
	f.awaitEmpty(t)
}

// functionCrashes: that is the function's own failure, and its pod keeps running.
func functionCrashes(t *testing.T, sys *system) {
	f := sys.variant(t, "test/crash", "crashes", nil)
	f.fails(t, codes.Internal, "panic: ")
	before := f.pod(t)
	f.fails(t, codes.Internal, "panic: ")
	if after := f.pod(t); after.UID != before.UID {
		t.Error("the pod was replaced")
	}
}

// functionOutOfMemory: the answer has the reason, and the pod keeps running or is replaced.
// (pod-cache-config.yaml gives it little memory.)
func functionOutOfMemory(t *testing.T, sys *system) {
	f := sys.variant(t, "test/memory", "out-of-memory", nil)
	f.fails(t, codes.Internal, "out of memory", "96")
	f.awaitPool(suite.Context(t), t, "nothing is in use", func(p *podmanagerv1.Pool) bool { return p.GetActive() == 0 })
	f.fails(t, codes.Internal, "out of memory", "96")
}
