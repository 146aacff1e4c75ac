// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// BenchmarkRun compares Run with the plain use of os/exec. Both take turns, so that
// what else the machine does falls on both alike, and the medians of their times are
// reported; "ratio" is Run's by the other's.
func BenchmarkRun(b *testing.B) {
	cmd, _ := install(b, "echo")
	for _, size := range []int{4 << 10, 100 << 10, 1 << 20} {
		input := bytes.Repeat([]byte("x"), size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			var plain, ours []time.Duration
			for b.Loop() {
				plain = append(plain, timed(func() { runPlain(b, cmd.Path, input) }))
				ours = append(ours, timed(func() { runOurs(b, fnproc.NewRunner(fnproc.Config{}), cmd, input) }))
			}
			b.ReportMetric(float64(median(plain).Microseconds()), "os/exec-µs")
			b.ReportMetric(float64(median(ours).Microseconds()), "fnproc-µs")
			b.ReportMetric(float64(median(ours))/float64(median(plain)), "ratio")
		})
	}
}

// BenchmarkPrefork compares Run with and without processes that were started before,
// in turns. Between two evaluations there is time for the next process to start.
func BenchmarkPrefork(b *testing.B) {
	cmd, _ := install(b, "echo")
	without, with := fnproc.NewRunner(fnproc.Config{}), startPool(b, 1)
	with.Prepare(cmd)
	input := bytes.Repeat([]byte("x"), 4<<10)
	var off, on []time.Duration
	for b.Loop() {
		off = append(off, timed(func() { runOurs(b, without, cmd, input) }))
		awaitWaiting(b, with, 1)
		on = append(on, timed(func() { runOurs(b, with, cmd, input) }))
	}
	b.ReportMetric(float64(median(off).Microseconds()), "off-µs")
	b.ReportMetric(float64(median(on).Microseconds()), "on-µs")
	b.ReportMetric(float64(median(on))/float64(median(off)), "ratio")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func runPlain(b *testing.B, path string, input []byte) {
	var output, log bytes.Buffer
	cmd := exec.Command(path)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &output, &log
	if err := cmd.Run(); err != nil || output.Len() != len(input) {
		b.Fatalf("%v, %d bytes of output", err, output.Len())
	}
}

func runOurs(b *testing.B, runner *fnproc.Runner, cmd fnproc.Command, input []byte) {
	got, err := runner.Run(b.Context(), cmd, input)
	if err != nil || len(got.Output) != len(input) {
		b.Fatalf("%v, %s, %d bytes of output", err, got.Status, len(got.Output))
	}
}
