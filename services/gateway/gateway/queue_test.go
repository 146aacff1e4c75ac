// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestDeadlineInTheQueue has a caller wait behind a function that does not end, until
// its deadline: the text is Porch's.
func TestDeadlineInTheQueue(t *testing.T) {
	dir := t.TempDir()
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: install(t, dir, "hang"), Functions: dir, Settings: function.Settings{Concurrency: 1}, Queue: 1,
		},
	}
	address := startConfigured(t, cfg)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	hanging := newCaller(t, address)
	go func() { ended <- hanging.evaluateWithin(ctx, image("hang"), "") }()
	testfn.AwaitRunning(t, dir, 1)
	fn := conformance.Function{Address: address, Image: image("hang")}
	timedOut := "function evaluation timed out for " + image("hang") + ": after "
	conformance.CheckWaited(t, fn, timedOut, "waiting for a free slot")
	leave()
	<-ended
}
