// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

func TestImageLabelsAreBounded(t *testing.T) {
	var labels telemetry.ImageLabels
	earn := func(i int) string {
		return labels.Earn(fmt.Sprintf("set:v%d", i))
	}
	seen := make(map[string]bool)
	for i := range 10 * telemetry.MaxImageLabels {
		seen[earn(i)] = true
	}
	if len(seen) != telemetry.MaxImageLabels+1 || !seen[telemetry.OtherImages] {
		t.Errorf("%d labels, want %d and %q", len(seen), telemetry.MaxImageLabels, telemetry.OtherImages)
	}
	if got := earn(0); got != "set:v0" {
		t.Errorf("the first image has label %q now, want its own", got)
	}
}

func TestInventedNamesUseNoLabels(t *testing.T) {
	var labels telemetry.ImageLabels
	for i := range 10 * telemetry.MaxImageLabels {
		if got := labels.Label(fmt.Sprintf("invented:v%d", i)); got != telemetry.OtherImages {
			t.Fatalf("an image that has not earned it has label %q", got)
		}
	}
	if got := labels.Earn("set:v1"); got != "set:v1" {
		t.Errorf("an image that exists has label %q, want its own", got)
	}
	if got := labels.Label("set:v1"); got != "set:v1" {
		t.Errorf("it has label %q later, want its own", got)
	}
}
