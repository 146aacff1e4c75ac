// SPDX-License-Identifier: Apache-2.0

// Package row runs an attack against a program that also serves other callers, and reports the result.
package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/attacks"
	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// Config configures how rows are run.
type Config struct {
	System *system.System
	// Brief is true if the attack must be short.
	Brief bool
}

// times are the minimum durations of the parts of a row.
type times struct{ warmUp, before, meanwhile, after time.Duration }

var (
	thorough = times{2 * time.Second, 5 * time.Second, 3 * time.Second, 5 * time.Second}
	brief    = times{time.Second, 2 * time.Second, 2 * time.Second, time.Second}
)

func (c Config) times() times {
	if c.Brief {
		return brief
	}
	return thorough
}

// attackLimit is the longest time of an attack.
const attackLimit = 2 * time.Minute

// tries is the maximum number of runs of a row that fails by time alone: the machine may have been busy, and a defect
// shows again.
const tries = 3

// Run runs a row. An error is an error of the harness. A brief row has fewer than 100 calls, so that its slowest call
// is its 99th percentile. If this call fails the row, thorough runs with more than a hundred calls follow.
func (c Config) Run(ctx context.Context, attack attacks.Attack, program string) (row Row, err error) {
	for range tries {
		if row, err = c.runOnce(ctx, attack, program); err != nil || !row.OnlySlow() {
			return row, err
		}
		c.Brief = false
	}
	return row, nil
}

func (c Config) runOnce(ctx context.Context, attack attacks.Attack, program string) (row Row, err error) {
	row = Row{Attack: attack.Name, Program: program}
	if err := c.System.Start(ctx, program); err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.System.Stop()) }()
	var samples caller.Samples
	stop, err := c.startCallers(ctx, program, &samples)
	if err != nil {
		return row, err
	}
	defer stop()
	at := c.watchAttack(ctx, attack, &row)
	row.Peak, row.Ended = c.System.Peak(), c.System.Ended()
	if row.Ended != "" {
		row.Log = c.System.Tail()
	}
	stop()
	row.compare(&samples, at)
	return row, ctx.Err()
}

// moments divide the time of a row.
type moments struct{ start, attacked, over, recovered, end time.Time }

// watchAttack runs the attack, and records the program's memory before and after it.
func (c Config) watchAttack(ctx context.Context, attack attacks.Attack, row *Row) (at moments) {
	times := c.times()
	pause(ctx, times.warmUp)
	at.start = time.Now()
	pause(ctx, times.before)
	row.Before = c.System.Memory()

	at.attacked = time.Now()
	row.Result = c.runAttack(ctx, attack)
	// The program may need longer for requests that were sent in a moment.
	pause(ctx, time.Until(at.attacked.Add(times.meanwhile)))
	at.over = time.Now()

	row.After = c.awaitSettled(ctx, row.Before)
	at.recovered = time.Now()
	pause(ctx, times.after)
	at.end = time.Now()
	return at
}

// compare records the latencies of the other callers before, during and after the attack.
func (r *Row) compare(samples *caller.Samples, at moments) {
	before, after := samples.Between(at.start, at.attacked), samples.Between(at.recovered, at.end)
	during := samples.Between(at.attacked, at.over)
	r.Undisturbed, r.Meanwhile = undisturbedP99(caller.P99(before), caller.P99(after)), caller.P99(during)
	r.Recovered = caller.P99(after) < caller.Never
	r.Failed = caller.Failures(append(during, after...))
}

// undisturbedP99 returns the latency to compare with: the latency before the attack, or after the attack if the
// machine has become a little slower. A much longer latency afterwards shows that the callers were still disturbed.
func undisturbedP99(before, after time.Duration) time.Duration {
	if after/slower <= max(before, leastP99) {
		return max(before, after)
	}
	return before
}

// runAttack runs the attack, whose connections end with it.
func (c Config) runAttack(ctx context.Context, attack attacks.Attack) error {
	ctx, cancel := context.WithTimeout(ctx, attackLimit)
	defer cancel()
	return attack.Run(ctx, &attacks.Target{System: c.System, Brief: c.Brief})
}

// awaitSettled waits until the program has freed its memory, within the time limit, and returns the used memory.
func (c Config) awaitSettled(ctx context.Context, before int64) int64 {
	end := time.Now().Add(settle)
	for time.Now().Before(end) && ctx.Err() == nil && c.System.Ended() == "" {
		if used := c.System.Memory(); used <= before+kept {
			return used
		}
		pause(ctx, 200*time.Millisecond)
	}
	return c.System.Memory()
}

// startCallers starts the other callers, in a process of their own so that the attacks' work does not delay them.
// stop ends them and waits for their last answers.
func (c Config) startCallers(ctx context.Context, program string, samples *caller.Samples) (stop func(), err error) {
	args := []string{"/proc/self/exe", caller.Role, c.System.Address, c.callersImage(program)}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the other callers: %w", err)
	}
	if err := c.System.Favour(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		samples.Read(out)
	}()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	}, nil
}

// callersImage returns the image that other callers evaluate. It is empty if a program serves only health checks to
// them.
func (c Config) callersImage(program string) string {
	switch program {
	case system.PodManager:
		return ""
	case system.ImageResolver:
		return caller.Resolve + c.System.Repository()
	default:
		return system.Steady
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
