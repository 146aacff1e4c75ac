// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"errors"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
)

func TestP99(t *testing.T) {
	calls := func(n, failed int) []caller.Sample {
		all := make([]caller.Sample, n)
		for i := range all {
			all[i].Took = time.Duration(i+1) * time.Millisecond
			if i < failed {
				all[i].Failed = errors.New("refused")
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		samples []caller.Sample
		want    time.Duration
		reason  string
	}{
		"hundred":    {calls(100, 0), 99 * time.Millisecond, "one of a hundred may take longer"},
		"one failed": {calls(100, 1), 100 * time.Millisecond, "it counts as the slowest"},
		"two failed": {calls(100, 2), caller.Never, "more than one of a hundred was not served"},
		"few":        {calls(10, 0), 10 * time.Millisecond, "with few calls each one counts"},
		"none":       {nil, caller.Never, "without a call there is no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := caller.P99(tc.samples); got != tc.want {
				t.Errorf("p99 is %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}
