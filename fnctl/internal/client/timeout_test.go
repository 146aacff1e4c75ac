// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
)

// TestWaitedFor has an evaluation run out of time: its error says what it waited for, once.
func TestWaitedFor(t *testing.T) {
	const own = "pod a: pulling images"
	late := connect.CodeDeadlineExceeded
	tests := map[string]struct {
		why   string
		cause error
		want  bool // that what this client saw is added
	}{
		"own deadline": {"nothing came from the gateway", connect.NewError(late, errors.New("x")), true},
		"the gateway's word": {
			"it knows better", connect.NewWireError(late, errors.New("waiting for a pod: queued")), false,
		},
		"its bare deadline": {
			"servers without that word", connect.NewWireError(late, context.DeadlineExceeded), true,
		},
		"another error": {"time did not run out", connect.NewError(connect.CodeInternal, errors.New("x")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := client.WaitedFor(&client.CallError{Problem: "no answer", Cause: tc.cause}, own)
			if got := strings.Contains(err.Error(), own); got != tc.want {
				t.Errorf("%s: %v", tc.why, err)
			}
		})
	}
}
