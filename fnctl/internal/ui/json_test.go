// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

// TestDurationsInJSONAreNumbers writes durations, and a text that looks like one.
func TestDurationsInJSONAreNumbers(t *testing.T) {
	message := &gatewayv1.GetStatusResponse{Functions: []*gatewayv1.GetStatusResponse_Function{{
		Image: `"median":"1s"`, Median: durationpb.New(1500 * time.Millisecond), P99: durationpb.New(2 * time.Second),
	}}}
	want := `{"functions":[{"image":"\"median\":\"1s\"","median":1.500,"p99":2}]}`
	if got := ui.JSON(message, ""); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
