// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
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

// evaluateHang evaluates hang for a caller who waits for ever. The evaluation must be stopped with Porch's text, which
// evaluateHang returns.
func evaluateHang(t *testing.T, address string) (message string) {
	t.Helper()
	code, message := conformance.Answer(t, conformance.Function{Address: address, Image: image("hang")}, time.Hour)
	if want := "function evaluation timed out for " + image("hang") + ": after "; code != "deadline_exceeded" ||
		!strings.Contains(message, want) {
		t.Errorf("the answer is %s: %q, want deadline_exceeded: %q", code, message, want)
	}
	return message
}

// TestEvaluationTime has callers who wait for ever. On a busy machine, a short limit may be over before the function
// runs: then the limits are raised.
func TestEvaluationTime(t *testing.T) {
	for name, tc := range map[string]struct {
		gateway, function time.Duration
		phase, want       string // want is the remedy, with the limit that ended the evaluation in place of LIMIT
	}{
		"the gateway's": {
			50 * time.Millisecond, 0, "the function was running",
			"may take LIMIT: raise the gateway's setting FNR_MAX_EVALUATION_TIME",
		},
		"the function's": {
			time.Hour, 50 * time.Millisecond, "the function was running",
			"may take LIMIT: raise maxEvaluationTime of function hang in ",
		},
		"the function's is longer": {
			200 * time.Millisecond, 220 * time.Millisecond, "the function was running", "may take LIMIT",
		},
		"in the queue": {200 * time.Millisecond, time.Hour, "waiting for a free slot", "FNR_MAX_EVALUATION_TIME"},
	} {
		t.Run(name, func(t *testing.T) {
			for general, own := tc.gateway, tc.function; ; general, own = general*4, own*4 {
				var fields string
				limit := cmp.Or(own, general)
				if own > 0 {
					fields = ", maxEvaluationTime: " + limit.String()
				}
				address, dir := startTimed(t, general, fields)
				if tc.phase != "the function was running" {
					leave, err := takeSlot(t, address, dir)
					defer leave()
					if err != nil {
						if general < 5*time.Minute {
							continue
						}
						t.Fatal(err)
					}
				}
				message := evaluateHang(t, address)
				if !strings.Contains(message, tc.phase) && min(limit, general) < 5*time.Minute {
					continue
				}
				want := strings.Replace(tc.want, "LIMIT", limit.String(), 1)
				if !strings.Contains(message, tc.phase) || !strings.Contains(message, want) {
					t.Errorf("the answer %q does not say %q and %q", message, tc.phase, want)
				}
				return
			}
		})
	}
}

// takeSlot evaluates hang until the returned function is called, and returns once hang runs. It returns the error of an
// evaluation that ends before.
func takeSlot(t *testing.T, address, dir string) (leave func(), err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	hanging := newCaller(t, address)
	go func() { ended <- hanging.evaluateWithin(ctx, image("hang"), "") }()
	await.Equal(t, "hang runs or has ended", func() bool { return len(ended)+len(testfn.Running(dir)) > 0 }, true)
	select {
	case err := <-ended:
		return cancel, fmt.Errorf("hang has ended: %w", err)
	default:
		return func() { cancel(); <-ended }, nil
	}
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
