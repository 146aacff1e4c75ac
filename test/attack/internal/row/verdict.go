// SPDX-License-Identifier: Apache-2.0

package row

import (
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// Limits of an attack's effect on the program and its well-behaved callers. The test fails if a limit is exceeded.
const (
	// slower is the maximum factor by which an attack may increase the latency of well-behaved callers.
	slower = 3
	// leastP99 is the lowest latency without an attack that the test uses for comparisons. It replaces lower measured
	// latencies. The callers, the attack and the program share two processors, where a scheduler's time slice is some
	// milliseconds. A comparison with a lower latency would therefore measure the scheduler, not the program.
	leastP99 = 20 * time.Millisecond
	// kept is the memory in bytes that a program may retain after an attack. It is a tenth of the memory limit. If each
	// attack retained more, ten attacks would exhaust the limit. A tenth of the usage before the attack is some megabytes
	// and would be too strict. Garbage collection and processes started in advance change the usage by more.
	kept = system.Limit / 10
	// settle is the time limit for the program to free its memory after an attack.
	settle = 30 * time.Second
)

// Row is the result of an attack on a program, for a row of the printed table.
type Row struct {
	Attack, Program        string
	Before, Peak, After    int64 // bytes
	PeakLimit              int64 // maximum of Peak; 0 for none
	Undisturbed, Meanwhile time.Duration
	Recovered              bool   // true if well-behaved callers are served after the attack
	Failed                 string // failed calls of well-behaved callers
	Result                 error  // error of the attack itself
	Ended                  string // exit status of the program
	Log                    string // last part of the program's log if the program exited
}

// Err returns all problems of the program, or nil if it withstood the attack.
func (r Row) Err() error {
	var failures []error
	if r.Ended != "" {
		failures = append(failures, fmt.Errorf("the program ended: %s: %s", r.Ended, r.Log))
	}
	if r.Result != nil {
		failures = append(failures, r.Result)
	}
	return errors.Join(append(failures, r.checkMemory(), r.checkLatency())...)
}

// checkMemory returns an error if the program used too much memory during the attack, or retained too much.
func (r Row) checkMemory() error {
	if r.Ended != "" {
		return nil // reported already
	}
	var failures []error
	if r.PeakLimit > 0 && r.Peak > r.PeakLimit {
		failures = append(failures, fmt.Errorf("%s of memory were in use, at most %s are permitted",
			formatMebibytes(r.Peak), formatMebibytes(r.PeakLimit)))
	}
	if r.After > r.Before+kept {
		failures = append(failures,
			fmt.Errorf("%s of memory more than before are in use %v later", formatMebibytes(r.After-r.Before), settle))
	}
	return errors.Join(failures...)
}

// checkLatency returns an error if calls of well-behaved callers failed or took too long during the attack.
func (r Row) checkLatency() error {
	if r.Ended != "" {
		return nil // reported already
	}
	if r.Undisturbed == caller.Never || !r.Recovered {
		return fmt.Errorf("other callers were not served before or afterwards%s", r.Failed)
	}
	if allowed := slower * max(r.Undisturbed, leastP99); r.Meanwhile > allowed {
		return fmt.Errorf("other callers waited for up to %s, %v would do%s",
			formatLatency(r.Meanwhile), allowed.Round(time.Millisecond), r.Failed)
	}
	return nil
}

// OnlySlow reports whether slow answers to well-behaved callers are the only problem.
func (r Row) OnlySlow() bool {
	return r.checkLatency() != nil && r.Ended == "" && r.Result == nil && r.checkMemory() == nil
}
