// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"
	"time"
)

func TestTelemetryHasALimit(t *testing.T) {
	took := func(each time.Duration) times {
		return times{evaluations: []time.Duration{each, each, each}, cpu: each, calls: 1}
	}
	ways := []way{{name: "off"}, {name: "on"}}
	for on, want := range map[time.Duration]bool{
		990 * time.Microsecond: true, 1030 * time.Microsecond: true, 1031 * time.Microsecond: false,
	} {
		all := map[string]times{"off": took(time.Millisecond), "on": took(on)}
		if held, err := reportTelemetry(io.Discard, 1, ways, all); err != nil || held != want {
			t.Errorf("%v against a millisecond: held %v (%v), want %v", on, held, err, want)
		}
	}
}
