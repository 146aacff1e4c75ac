// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// startTimed runs a gateway whose evaluations may take maxTime, with one slot and the
// functions echo and hang. The entry of hang has hangFields too.
func startTimed(t *testing.T, maxTime time.Duration, hangFields string) (address, dir string) {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	conformance.Install(t, dir, "hang")
	conformance.Install(t, dir, "echo")
	const entries = "functions: [{function: hang, images: [%q]%s}, {function: echo, images: [%q]}]"
	write(t, file, fmt.Sprintf(entries, image("hang"), hangFields, image("echo")))
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, MaxEvaluationTime: maxTime,
		DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: file, Functions: dir, Queue: 10, Settings: function.Settings{Concurrency: 1},
		},
	}
	return startConfigured(t, cfg), dir
}

// wantTimeout fails the test unless an evaluation of hang, whose caller waits for ever, is
// stopped with Porch's text and these words.
func wantTimeout(t *testing.T, address string, words ...string) {
	t.Helper()
	code, message := conformance.Answer(t, conformance.Function{Address: address, Image: image("hang")}, time.Hour)
	if code != "deadline_exceeded" {
		t.Errorf("the answer is %s, want deadline_exceeded", code)
	}
	for _, want := range append(words, "function evaluation timed out for "+image("hang")+": after ") {
		if !strings.Contains(message, want) {
			t.Errorf("the answer %q does not say %q", message, want)
		}
	}
}

// TestEvaluationTime has callers who wait for ever.
func TestEvaluationTime(t *testing.T) {
	t.Run("the gateway's", func(t *testing.T) {
		address, _ := startTimed(t, 50*time.Millisecond, "")
		wantTimeout(t, address, "the function was running",
			"may take 50ms: raise the gateway's setting FNR_MAX_EVALUATION_TIME")
	})
	t.Run("the function's", func(t *testing.T) {
		address, _ := startTimed(t, time.Hour, ", maxEvaluationTime: 50ms")
		wantTimeout(t, address, "the function was running", "may take 50ms: raise maxEvaluationTime of function hang in ")
	})
	t.Run("the function's is longer", func(t *testing.T) {
		address, _ := startTimed(t, time.Second, ", maxEvaluationTime: 1100ms")
		wantTimeout(t, address, "the function was running", "may take 1.1s")
	})
	t.Run("in the queue", func(t *testing.T) {
		address, dir := startTimed(t, time.Second, ", maxEvaluationTime: 1h")
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		hanging := newCaller(t, address)
		go func() { ended <- hanging.evaluateWithin(ctx, image("hang"), "") }()
		testfn.AwaitRunning(t, dir, 1)
		wantTimeout(t, address, "waiting for a free slot", "FNR_MAX_EVALUATION_TIME")
		leave()
		<-ended
	})
}

// TestALoopingFunctionLeavesOthersTheirSlot has all slots taken by one function.
func TestALoopingFunctionLeavesOthersTheirSlot(t *testing.T) {
	address, dir := startTimed(t, time.Hour, "")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 8)
	hanging := newCaller(t, address)
	for range cap(ended) {
		go func() { ended <- hanging.evaluateWithin(ctx, image("hang"), "") }()
	}
	testfn.AwaitRunning(t, dir, 1)
	if err := newCaller(t, address).evaluateWithin(t.Context(), image("echo"), ""); err != nil {
		t.Errorf("another function: %v", err)
	}
	leave()
	for range cap(ended) {
		<-ended
	}
}
