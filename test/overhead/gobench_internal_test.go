// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestBenchTable(t *testing.T) {
	const out = "goos: linux\nBenchmarkHit/size=1-2   \t 1064\t 10 ns/op\t 0.95 p50-ms\nPASS\n"
	const want = "| benchmark | figures |\n|---|---|\n| Hit/size=1 | 10 ns/op, 0.95 p50-ms |\n"
	if got := benchTable(out); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := benchTable("PASS\n"); got != "" {
		t.Errorf("a table without benchmarks: %q", got)
	}
}
