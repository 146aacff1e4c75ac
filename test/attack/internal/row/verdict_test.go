// SPDX-License-Identifier: Apache-2.0

package row_test

import (
	"errors"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
	"github.com/krm-function-runner/function-runner/test/attack/internal/row"
)

func TestErr(t *testing.T) {
	good := row.Row{
		Before: 50 << 20, Peak: 900 << 20, PeakLimit: 900 << 20, After: 60 << 20,
		Undisturbed: 30 * time.Millisecond, Meanwhile: 90 * time.Millisecond,
		Recovered: true,
	}
	tests := map[string]struct {
		reason   string
		change   func(r *row.Row)
		ok, slow bool
	}{
		"good": {
			"nothing is wrong",
			func(*row.Row) {}, true, false,
		},
		"slow": {
			"more than three times",
			func(r *row.Row) { r.Meanwhile++ }, false, true,
		},
		"fast before": {
			"a millisecond and five are the machine's noise",
			func(r *row.Row) {
				r.Undisturbed = 1
				r.Meanwhile = 60 * time.Millisecond
			}, true, false,
		},
		"refused": {
			"to be refused is not to be served",
			func(r *row.Row) { r.Meanwhile = caller.Never }, false, true,
		},
		"never served": {
			"there is nothing to compare with",
			func(r *row.Row) { r.Undisturbed, r.Meanwhile = caller.Never, caller.Never }, false, true,
		},
		"not after": {
			"what is broken has to heal",
			func(r *row.Row) { r.Recovered = false }, false, true,
		},
		"memory": {
			"it is not back",
			func(r *row.Row) { r.After = 160 << 20 }, false, false,
		},
		"peak": {
			"it was back in time, and more than the attack may cost",
			func(r *row.Row) { r.Peak++ }, false, false,
		},
		"memory, slow": {
			"it is not only slow",
			func(r *row.Row) {
				r.After = 160 << 20
				r.Meanwhile = caller.Never
			}, false, false,
		},
		"ended": {
			"the program has to go on",
			func(r *row.Row) { r.Ended = "signal: killed" }, false, false,
		},
		"attack's word": {
			"it found something",
			func(r *row.Row) { r.Result = errors.New("breach") }, false, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			if err := r.Err(); (err == nil) != tc.ok || r.OnlySlow() != tc.slow {
				t.Errorf("the verdict is %v, only slow: %t: %s", err, r.OnlySlow(), tc.reason)
			}
		})
	}
}
