// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestFirstEvaluationsBesideTheLauncher(t *testing.T) {
	p := firsts{
		bare: 4 * time.Millisecond, launcher: 9 * time.Millisecond,
		hop: 6 * time.Millisecond, sandbox: 11 * time.Millisecond,
	}
	const want = "first evaluation, p50: bare 4ms, by bubblewrap alone 9ms, called through a server that does " +
		"nothing else 6ms, by the gateway 11ms: the bare process, the call and 1.00 times what bubblewrap takes; 1.40 " +
		"times with the call\n"
	if got := p.report(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
