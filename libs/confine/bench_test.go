// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// BenchmarkConfinement compares evaluations confined and not, in turns, with and without
// spare processes, of a function in Go and one in Node.js. FNR_BENCH_FUNCTION names another
// binary than the test function.
func BenchmarkConfinement(b *testing.B) {
	node := filepath.Join(b.TempDir(), "node-function")
	script := "#!/usr/bin/env node\nprocess.stdout.write(require('fs').readFileSync(0))\n"
	if err := os.WriteFile(node, []byte(script), 0o700); err != nil {
		b.Fatal(err)
	}
	binary := command(b, "echo").Path
	for name, cmd := range map[string]fnproc.Command{
		"go":   {Path: binary, Args: []string{"echo"}},
		"node": {Path: node},
	} {
		cmd.Dir = "/"
		cmd.MaxOutput = 1 << 20
		cmd.MaxLog = 1 << 20
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "GOMAXPROCS=1"}
		for _, spare := range []bool{true, false} {
			b.Run(name+map[bool]string{true: "/spare", false: "/new"}[spare], func(b *testing.B) { compareCalls(b, cmd, spare) })
		}
	}
}

func compareCalls(b *testing.B, cmd fnproc.Command, spare bool) {
	cfg := config(b)
	c, err := confine.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	configs := []fnproc.Config{{}, {Confiner: c}}
	runners := make([]*fnproc.Runner, len(configs))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, cfg := range configs {
		if spare {
			cfg.Keep = func(string) int { return 1 }
			cfg.Total = 1
			cfg.Unused = time.Hour
		}
		runners[i] = fnproc.NewRunner(cfg)
		running.Go(func() { runners[i].Maintain(ctx) })
		runners[i].Prepare(cmd)
	}
	input := []byte("kind: ResourceList\nitems: []\n")
	var times [2][]time.Duration
	for b.Loop() {
		for i, runner := range runners {
			for spare && runner.Spares() == 0 {
				<-time.After(time.Millisecond)
			}
			<-time.After(30 * time.Millisecond) // a spare process has read up to its input by then
			start := time.Now()
			got, err := runner.Run(b.Context(), cmd, input)
			if err != nil || got.ExitCode != 0 {
				b.Fatalf("%v, %s, %s", err, got.Status, got.Log)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, name := range []string{"off-µs", "on-µs"} {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2].Nanoseconds())/1000, name)
	}
}
